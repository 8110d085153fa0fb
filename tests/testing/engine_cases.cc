#include "tests/testing/engine_cases.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

namespace kvasir::testing {

using vllm::EngineSpec;
using vllm::SpecKind;

namespace {

EngineSpec Attention(SpecKind kind, std::int64_t block, std::int64_t heads, std::int64_t head_size,
                     std::int64_t head_size_v) {
  EngineSpec spec = vllm::MakeSpec(kind);
  spec.block_size = block;
  spec.num_kv_heads = heads;
  spec.head_size = head_size;
  spec.head_size_v = head_size_v;
  return spec;
}

}  // namespace

EngineSpec FullSpec(std::int64_t heads, std::int64_t head_size) {
  return Attention(SpecKind::kFull, 16, heads, head_size, head_size);
}

EngineSpec SlidingSpec(std::int64_t window, std::int64_t heads, std::int64_t head_size) {
  EngineSpec spec = Attention(SpecKind::kSliding, 16, heads, head_size, head_size);
  spec.sliding_window = window;
  return spec;
}

EngineSpec ChunkedSpec(std::int64_t chunk) {
  EngineSpec spec = Attention(SpecKind::kChunkedLocal, 16, 8, 128, 128);
  spec.attention_chunk_size = chunk;
  return spec;
}

EngineSpec MlaSpec(std::int64_t head_size) { return Attention(SpecKind::kMla, 64, 1, head_size, 0); }

EngineSpec SlidingMlaSpec(std::int64_t window, std::int64_t head_size) {
  EngineSpec spec = Attention(SpecKind::kSlidingMla, 64, 1, head_size, 0);
  spec.sliding_window = window;
  return spec;
}

EngineSpec MambaSpec(std::int64_t elements) {
  EngineSpec spec = vllm::MakeSpec(SpecKind::kMamba);
  spec.block_size = 1 << 17;
  spec.shapes = {{elements}};
  spec.dtypes = {vllm::ElementType::kFloat32};
  return spec;
}

EngineSpec HiddenSpec(std::int64_t heads, std::int64_t head_size) {
  return Attention(SpecKind::kHiddenState, 16, heads, head_size, 0);
}

CaseBuilder::CaseBuilder(std::int64_t max_model_len, std::int64_t available_bytes) {
  case_.config.max_model_len = max_model_len;
  Worker(available_bytes);
}

CaseBuilder& CaseBuilder::Layer(std::string name, const EngineSpec& spec) {
  auto known = std::find(case_.specs.begin(), case_.specs.end(), spec);
  if (known == case_.specs.end()) known = case_.specs.insert(case_.specs.end(), spec);
  case_.layers.push_back({std::move(name), static_cast<std::int32_t>(known - case_.specs.begin())});
  return *this;
}

CaseBuilder& CaseBuilder::Layers(std::string_view prefix, const EngineSpec& spec, int count) {
  for (int i = 0; i < count; ++i) {
    Layer(std::string(prefix) + "." + std::to_string(case_.layers.size()), spec);
  }
  return *this;
}

CaseBuilder& CaseBuilder::Worker(std::int64_t available_bytes) {
  case_.workers.emplace_back();
  case_.workers.back().available_bytes = available_bytes;
  return *this;
}

CaseBuilder& CaseBuilder::Stages(const std::vector<std::int32_t>& bounds,
                                 const std::vector<std::int64_t>& available_bytes) {
  case_.workers.clear();
  for (std::size_t w = 0; w + 1 < bounds.size(); ++w) {
    Worker(available_bytes[w]);
    std::vector<std::int32_t> layers(static_cast<std::size_t>(bounds[w + 1] - bounds[w]));
    std::iota(layers.begin(), layers.end(), bounds[w]);
    case_.workers.back().layers = std::move(layers);
  }
  case_.config.pp = static_cast<std::int64_t>(case_.workers.size());
  return *this;
}

vllm::EngineCase KimiK3Dspark(bool marked) {
  EngineSpec mla = MlaSpec();
  mla.block_size = 768;  // the smallest multiple of 128 whose page covers the state
  EngineSpec kda = vllm::MakeSpec(SpecKind::kMamba);
  kda.block_size = 1 << 17;
  kda.shapes = {{1536, 3}, {1536, 3}, {1536, 3}, {12, 128, 128}};
  kda.dtypes = {vllm::ElementType::kBfloat16, vllm::ElementType::kBfloat16, vllm::ElementType::kBfloat16,
                vllm::ElementType::kFloat32};
  kda.page_size_padded = 768 * 576 * 2;
  kda.mamba_type = "linear";
  kda.num_speculative_blocks = 7;
  EngineSpec draft = mla;
  draft.non_causal_multi_token_decode = marked;

  CaseBuilder builder(1 << 17, 60 * kGib);
  for (int i = 0; i < 93; ++i) {
    const bool latent = i % 4 == 3 || i == 92;
    builder.Layer("model.layers." + std::to_string(i) + (latent ? ".self_attn.attn" : ".self_attn.kda"),
                  latent ? mla : kda);
  }
  for (int i = 0; i < 5; ++i) builder.Layer("draft.layers." + std::to_string(i) + ".self_attn.attn", draft);
  builder.config().block_size = 768;
  builder.config().tp = 8;
  builder.config().speculative = vllm::EngineSpeculative{"dspark", 7, 1, false};
  return builder.engine_case();
}

std::vector<std::size_t> GroupSizes(const vllm::EnginePlan& plan) {
  std::vector<std::size_t> sizes;
  sizes.reserve(plan.groups.size());
  for (const vllm::EngineGroup& group : plan.groups) sizes.push_back(group.layers.size());
  return sizes;
}

const EngineSpec& SpecOfGroup(const vllm::EnginePlan& plan, std::size_t group) {
  const vllm::GroupSpec& spec = plan.groups[group].spec;
  const auto* const wrapper = std::get_if<vllm::UniformTypeSpecs>(&spec);
  const std::int32_t id = wrapper != nullptr ? wrapper->members.front().spec : std::get<std::int32_t>(spec);
  return plan.specs[static_cast<std::size_t>(id)];
}

}  // namespace kvasir::testing
