#include "planner/rulesets/vllm/spec_table.h"

#include <string>

#include "common/base/status_macros.h"

namespace kvasir::vllm {
namespace {

// FNV-1a over every field that inputs are likely to vary: a search key, never an order.
class Fingerprint {
 public:
  explicit Fingerprint(const EngineSpec& spec) {
    for (const std::int64_t value :
         {static_cast<std::int64_t>(spec.kind), spec.block_size, spec.num_kv_heads, spec.head_size,
          spec.head_size_v, static_cast<std::int64_t>(spec.dtype), spec.tokens_per_state.tokens,
          spec.extra_retained_tokens, spec.rswa_window,
          static_cast<std::int64_t>(spec.non_causal_multi_token_decode), spec.num_speculative_blocks,
          spec.num_prefill_checkpoint_blocks}) {
      Mix(value);
    }
    for (const std::optional<std::int64_t>& value :
         {spec.page_size_padded, spec.state_content_bytes, spec.num_head_slots, spec.sliding_window,
          spec.attention_chunk_size, spec.sink_len, spec.alignment, spec.block_stride_alignment,
          spec.storage_block_size, spec.prefill_checkpoint_alignment}) {
      Mix(value.value_or(-1));
    }
    for (const std::vector<std::int64_t>& shape : spec.shapes) {
      for (const std::int64_t extent : shape) Mix(extent);
    }
    for (const std::optional<std::string>* text : {&spec.cache_dtype_str, &spec.model_version}) {
      for (const char c : text->value_or("")) Mix(c);
    }
    for (const char c : spec.mamba_type) Mix(c);
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  void Mix(std::int64_t value) { hash_ = (hash_ ^ static_cast<std::uint64_t>(value)) * 1099511628211U; }

  std::uint64_t hash_ = 14695981039346656037U;
};

}  // namespace

std::int32_t SpecTable::Intern(EngineSpec spec) {
  const std::uint64_t fingerprint = Fingerprint(spec).value();
  const auto [first, last] = by_fingerprint_.equal_range(fingerprint);
  for (auto entry = first; entry != last; ++entry) {
    if (specs_[static_cast<std::size_t>(entry->second)] == spec) return entry->second;
  }
  const auto id = static_cast<std::int32_t>(specs_.size());
  const EngineResult<std::int64_t> page = PageBytes(spec);
  pages_.push_back(page.ok() ? std::optional<std::int64_t>(*page) : std::nullopt);
  specs_.push_back(std::move(spec));
  by_fingerprint_.emplace(fingerprint, id);
  return id;
}

EngineResult<std::int64_t> SpecTable::Page(std::int32_t id) const {
  const std::optional<std::int64_t>& page = pages_[static_cast<std::size_t>(id)];
  if (page.has_value()) return *page;
  return PageBytes((*this)[id]);  // again, for the failure
}

EngineResult<std::int32_t> SpecTable::WithBlockSize(std::int32_t id, std::int64_t tokens) {
  KVASIR_ASSIGN_OR_RETURN(EngineSpec spec, vllm::WithBlockSize(version_, (*this)[id], tokens));
  return Intern(std::move(spec));
}

EngineResult<std::int32_t> SpecTable::WithPaddedPage(std::int32_t id, std::int64_t bytes) {
  KVASIR_ASSIGN_OR_RETURN(EngineSpec spec, vllm::WithPaddedPage(version_, (*this)[id], bytes));
  return Intern(std::move(spec));
}

std::vector<std::int32_t> DistinctSpecs(const LayerSpecs& layers) {
  std::vector<std::int32_t> distinct;
  std::vector<bool> seen;
  for (const UniformTypeSpecs::Member& member : layers) {
    const auto id = static_cast<std::size_t>(member.spec);
    if (id >= seen.size()) seen.resize(id + 1);
    if (seen[id]) continue;
    seen[id] = true;
    distinct.push_back(member.spec);
  }
  return distinct;
}

std::vector<std::int32_t> SpecsOf(const EngineGroup& group) {
  if (const auto* const merged = std::get_if<std::int32_t>(&group.spec)) return {*merged};
  return DistinctSpecs(std::get<UniformTypeSpecs>(group.spec).members);
}

std::int32_t SpecAt(const EngineGroup& group, std::size_t i) {
  if (const auto* const merged = std::get_if<std::int32_t>(&group.spec)) return *merged;
  return std::get<UniformTypeSpecs>(group.spec).members[i].spec;
}

}  // namespace kvasir::vllm
