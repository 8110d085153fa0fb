#include "planner/rulesets/vllm/spec_fields.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"

namespace kvasir::vllm {
namespace {

std::string Text(std::int64_t value) { return absl::StrFormat("%d", value); }
std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(const std::string& value) { return value; }
std::string Text(ElementType value) { return std::string(ElementTypeName(value)); }
std::string Text(QuantMode value) { return std::string(QuantModeName(value)); }
std::string Text(MambaCacheMode value) { return std::string(MambaCacheModeName(value)); }
std::string Text(SpecKind value) { return std::string(SpecKindWord(value)); }
std::string Text(CacheRole value) { return value == CacheRole::kSparse ? "sparse" : "indexer"; }
std::string Text(TokensPerState value) {
  return value.states == 1 ? Text(value.tokens) : absl::StrFormat("%d/%d", value.tokens, value.states);
}
template <class T>
std::string Text(const std::vector<T>& values) {
  std::string text = "[";
  for (const T& value : values) {
    if (text.size() > 1) text += ",";
    text += Text(value);
  }
  return text + "]";
}
template <class T>
std::string Text(const std::optional<T>& value) {
  return value.has_value() ? Text(*value) : "none";
}

// A field: its name, and how to compare and to print it.
struct Field {
  std::string_view name;
  bool (*equal)(const EngineSpec&, const EngineSpec&);
  std::string (*text)(const EngineSpec&);
};

template <auto kMember>
constexpr Field Row(std::string_view name) {
  return {name, [](const EngineSpec& a, const EngineSpec& b) { return a.*kMember == b.*kMember; },
          [](const EngineSpec& spec) { return Text(spec.*kMember); }};
}

// First those of every attention kind, in the engine's order.
constexpr std::size_t kAttentionFields = 13;
constexpr std::array<Field, 36> kFields = {{
    Row<&EngineSpec::block_size>("block_size"),
    Row<&EngineSpec::dcp_sharded>("dcp_sharded"),
    Row<&EngineSpec::block_stride_alignment>("block_stride_alignment"),
    Row<&EngineSpec::num_kv_heads>("num_kv_heads"),
    Row<&EngineSpec::head_size>("head_size"),
    Row<&EngineSpec::dtype>("dtype"),
    Row<&EngineSpec::head_size_v>("head_size_v"),
    Row<&EngineSpec::kv_quant_mode>("kv_quant_mode"),
    Row<&EngineSpec::page_size_padded>("page_size_padded"),
    Row<&EngineSpec::indexes_kv_by_block_stride>("indexes_kv_by_block_stride"),
    Row<&EngineSpec::num_head_slots>("num_head_slots"),
    Row<&EngineSpec::state_content_bytes>("state_content_bytes"),
    Row<&EngineSpec::tokens_per_state>("tokens_per_state"),
    Row<&EngineSpec::kind>("kind"),
    Row<&EngineSpec::sliding_window>("sliding_window"),
    Row<&EngineSpec::attention_chunk_size>("attention_chunk_size"),
    Row<&EngineSpec::non_causal>("non_causal"),
    Row<&EngineSpec::extra_retained_tokens>("extra_retained_tokens"),
    Row<&EngineSpec::rswa_window>("rswa_window"),
    Row<&EngineSpec::sink_len>("sink_len"),
    Row<&EngineSpec::cache_dtype_str>("cache_dtype_str"),
    Row<&EngineSpec::alignment>("alignment"),
    Row<&EngineSpec::model_version>("model_version"),
    Row<&EngineSpec::non_causal_multi_token_decode>("non_causal_multi_token_decode"),
    Row<&EngineSpec::cache_role>("cache_role"),
    Row<&EngineSpec::is_index_group_leader>("is_index_group_leader"),
    Row<&EngineSpec::storage_block_size>("storage_block_size"),
    Row<&EngineSpec::bounded_replay>("bounded_replay"),
    Row<&EngineSpec::shapes>("shapes"),
    Row<&EngineSpec::dtypes>("dtypes"),
    Row<&EngineSpec::mamba_type>("mamba_type"),
    Row<&EngineSpec::mamba_cache_mode>("mamba_cache_mode"),
    Row<&EngineSpec::num_speculative_blocks>("num_speculative_blocks"),
    Row<&EngineSpec::num_prefill_checkpoint_blocks>("num_prefill_checkpoint_blocks"),
    Row<&EngineSpec::prefill_checkpoint_alignment>("prefill_checkpoint_alignment"),
    Row<&EngineSpec::tp_replicated>("tp_replicated"),
}};

std::string_view FirstDifferent(const EngineSpec& a, const EngineSpec& b, std::size_t fields) {
  for (std::size_t i = 0; i < fields; ++i) {
    if (!kFields.at(i).equal(a, b)) return kFields.at(i).name;
  }
  return {};
}

}  // namespace

std::string_view FirstDifferentAttentionField(const EngineSpec& a, const EngineSpec& b) {
  return FirstDifferent(a, b, kAttentionFields);
}

std::string_view FirstDifferentField(const EngineSpec& a, const EngineSpec& b) {
  return FirstDifferent(a, b, kFields.size());
}

void AppendFields(const EngineSpec& spec, std::string& text) {
  const EngineSpec plain = MakeSpec(spec.kind);
  for (const Field& row : kFields) {
    if (row.equal(spec, plain)) continue;
    text += ' ';
    text += row.name;
    text += '=';
    text += row.text(spec);
  }
}

std::string FieldText(const EngineSpec& spec, std::string_view field) {
  for (const Field& row : kFields) {
    if (row.name == field) return row.text(spec);
  }
  return "?";
}

}  // namespace kvasir::vllm
