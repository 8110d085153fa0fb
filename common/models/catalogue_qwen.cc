// Qwen2.5 to Qwen3.6.
#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

struct Size {
  std::int64_t hidden;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t intermediate;
};

ModelDescription Qwen3(const Size& size, bool tied) {
  ModelDescription m = Make({.architecture = "Qwen3ForCausalLM",
                             .hidden = size.hidden,
                             .vocab = 151936,
                             .context = 40960,
                             .theta = 1e6,
                             .tied = tied});
  Add(m, size.layers, Heads(size.heads, size.kv_heads, 128), Dense(size.intermediate));
  return m;
}

// Experts are as wide as the dense MLP would be.
ModelDescription Qwen3Moe(const Size& size) {
  ModelDescription m = Qwen3(size, false);
  m.architecture = "Qwen3MoeForCausalLM";
  for (ModelLayer& layer : m.layers)
    layer.mlp = {.experts = 128, .experts_per_token = 8, .expert_intermediate = size.intermediate};
  return m;
}

// The VL models: the same layers, trained further.
ModelDescription Seeing(ModelDescription m, std::string_view architecture) {
  m.architecture = architecture;
  m.context = 262144;
  m.rope.theta = 5e6;
  m.multimodal = true;
  return m;
}

ModelDescription Qwen25(std::string_view architecture, const Size& size, std::int64_t vocab,
                        std::int64_t context, bool tied) {
  ModelDescription m = Make({.architecture = architecture,
                             .hidden = size.hidden,
                             .vocab = vocab,
                             .context = context,
                             .theta = 1e6,
                             .tied = tied});
  Add(m, size.layers, Heads(size.heads, size.kv_heads, 128), Dense(size.intermediate));
  m.multimodal = m.architecture == "Qwen2_5_VLForConditionalGeneration";
  return m;
}

// Gated delta nets with gated full attention in every fourth layer.
void AddDelta(ModelDescription& m, const Size& size, std::int64_t value_heads, std::optional<DType> state,
              const MlpShape& mlp) {
  AttentionShape attention = Heads(size.heads, size.kv_heads, 256);
  attention.output_gate = true;
  const GatedDeltaShape delta{.key_heads = 16,
                              .value_heads = value_heads,
                              .key_dim = 128,
                              .value_dim = 128,
                              .conv_kernel = 4,
                              .state_dtype = state};
  AddAlternating(m, size.layers, 4, delta, attention, mlp);
  m.rope.partial = 0.25;
}

ModelDescription Qwen3Next() {
  ModelDescription m = Make({.architecture = "Qwen3NextForCausalLM",
                             .hidden = 2048,
                             .vocab = 151936,
                             .context = 262144,
                             .theta = 1e7});
  AddDelta(m, {2048, 48, 16, 2, 0}, 32, std::nullopt,
           {.experts = 512, .experts_per_token = 10, .shared_experts = 1, .expert_intermediate = 512});
  return m;
}

ModelDescription Qwen35(std::string_view architecture, const Size& size, std::int64_t value_heads,
                        const MlpShape& mlp) {
  ModelDescription m = Make({.architecture = architecture,
                             .hidden = size.hidden,
                             .vocab = 248320,
                             .context = 262144,
                             .theta = 1e7,
                             .multimodal = true});
  AddDelta(m, size, value_heads, DType::kF32, mlp);
  PredictLikeLast(m);
  return m;
}

ModelDescription Qwen35Moe(const Size& size, std::int64_t value_heads, std::int64_t experts,
                           std::int64_t per_token) {
  return Qwen35("Qwen3_5MoeForConditionalGeneration", size, value_heads,
                {.experts = experts,
                 .experts_per_token = per_token,
                 .shared_experts = 1,
                 .expert_intermediate = size.intermediate});
}

constexpr Entry kEntries[] = {
    {"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B",
     [] { return Qwen25("Qwen2ForCausalLM", {1536, 28, 12, 2, 8960}, 151936, 32768, true); }},
    {"qwen2.5-vl-7b", "Qwen/Qwen2.5-VL-7B-Instruct",
     [] {
       return Qwen25("Qwen2_5_VLForConditionalGeneration", {3584, 28, 28, 4, 18944}, 152064, 128000, false);
     }},
    {"qwen3-0.6b", "Qwen/Qwen3-0.6B", [] { return Qwen3({1024, 28, 16, 8, 3072}, true); }},
    {"qwen3-1.7b", "Qwen/Qwen3-1.7B", [] { return Qwen3({2048, 28, 16, 8, 6144}, true); }},
    {"qwen3-4b", "Qwen/Qwen3-4B", [] { return Qwen3({2560, 36, 32, 8, 9728}, true); }},
    {"qwen3-8b", "Qwen/Qwen3-8B", [] { return Qwen3({4096, 36, 32, 8, 12288}, false); }},
    {"qwen3-14b", "Qwen/Qwen3-14B", [] { return Qwen3({5120, 40, 40, 8, 17408}, false); }},
    {"qwen3-32b", "Qwen/Qwen3-32B", [] { return Qwen3({5120, 64, 64, 8, 25600}, false); }},
    {"qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B", [] { return Qwen3Moe({2048, 48, 32, 4, 768}); }},
    {"qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", [] { return Qwen3Moe({4096, 94, 64, 4, 1536}); }},
    {"qwen3-next-80b-a3b", "Qwen/Qwen3-Next-80B-A3B-Instruct", Qwen3Next},
    {"qwen3-vl-8b", "Qwen/Qwen3-VL-8B-Instruct",
     [] { return Seeing(Qwen3({4096, 36, 32, 8, 12288}, false), "Qwen3VLForConditionalGeneration"); }},
    {"qwen3-vl-32b", "Qwen/Qwen3-VL-32B-Instruct",
     [] { return Seeing(Qwen3({5120, 64, 64, 8, 25600}, false), "Qwen3VLForConditionalGeneration"); }},
    {"qwen3-vl-235b-a22b", "Qwen/Qwen3-VL-235B-A22B-Instruct",
     [] { return Seeing(Qwen3Moe({4096, 94, 64, 4, 1536}), "Qwen3VLMoeForConditionalGeneration"); }},
    {"qwen3.5-27b", "Qwen/Qwen3.5-27B",
     [] { return Qwen35("Qwen3_5ForConditionalGeneration", {5120, 64, 24, 4, 0}, 48, Dense(17408)); }},
    {"qwen3.5-35b-a3b", "Qwen/Qwen3.5-35B-A3B", [] { return Qwen35Moe({2048, 40, 16, 2, 512}, 32, 256, 8); }},
    {"qwen3.5-122b-a10b", "Qwen/Qwen3.5-122B-A10B",
     [] { return Qwen35Moe({3072, 48, 32, 2, 1024}, 64, 256, 8); }},
    {"qwen3.5-397b-a17b", "Qwen/Qwen3.5-397B-A17B",
     [] { return Qwen35Moe({4096, 60, 32, 2, 1024}, 64, 512, 10); }},
};

}  // namespace

std::span<const Entry> QwenModels() { return kEntries; }

}  // namespace kvasir::catalogue
