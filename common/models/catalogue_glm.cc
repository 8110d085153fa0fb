// GLM-4.5 to GLM-5.2.
#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

ModelDescription Glm45(std::int64_t context) {
  ModelDescription m = Make({.architecture = "Glm4MoeForCausalLM",
                             .hidden = 5120,
                             .vocab = 151552,
                             .context = context,
                             .eps = 1e-5,
                             .theta = 1e6});
  m.rope.partial = 0.5;
  Add(m, 3, Heads(96, 8, 128), Dense(12288));
  Add(m, 89, Heads(96, 8, 128),
      {.experts = 160, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 1536});
  PredictLikeLast(m);
  return m;
}

ModelDescription Glm45V() {
  ModelDescription m = Make({.architecture = "Glm4vMoeForConditionalGeneration",
                             .hidden = 4096,
                             .vocab = 151552,
                             .context = 65536,
                             .eps = 1e-5,
                             .multimodal = true});
  m.rope.partial = 0.5;
  Add(m, 1, Heads(96, 8, 128), Dense(10944));
  Add(m, 45, Heads(96, 8, 128),
      {.experts = 128, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 1408});
  return m;
}

constexpr IndexerShape kIndexer{.heads = 32, .head_dim = 128, .top_k = 2048};

ModelDescription Glm5(std::int64_t context, double theta) {
  ModelDescription m = Make({.architecture = "GlmMoeDsaForCausalLM",
                             .hidden = 6144,
                             .vocab = 154880,
                             .context = context,
                             .eps = 1e-5,
                             .theta = theta});
  const MlaShape mla{.heads = 64,
                     .q_lora_rank = 2048,
                     .kv_lora_rank = 512,
                     .nope_dim = 192,
                     .rope_dim = 64,
                     .value_dim = 256};
  Add(m, 3, mla, Dense(12288));
  Add(m, 75, mla,
      BySigmoid({.experts = 256, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 2048},
                2.5));
  for (ModelLayer& layer : m.layers) layer.extra = {kIndexer};
  PredictLikeLast(m);
  return m;
}

// After layer 2 only every fourth layer picks; the three after it take the same rows.
ModelDescription Glm52() {
  ModelDescription m = Glm5(1048576, 8e6);
  for (ModelLayer& layer : m.layers) {
    if (layer.index > 2 && layer.index % 4 != 2) layer.extra.clear();
  }
  return m;
}

constexpr Entry kEntries[] = {
    {"glm-4.5", "zai-org/GLM-4.5", [] { return Glm45(131072); }},
    {"glm-4.5v", "zai-org/GLM-4.5V", Glm45V},
    {"glm-4.6", "zai-org/GLM-4.6", [] { return Glm45(202752); }},
    {"glm-5", "zai-org/GLM-5", [] { return Glm5(202752, 1e6); }},
    {"glm-5.1", "zai-org/GLM-5.1", [] { return Glm5(202752, 1e6); }},
    {"glm-5.2", "zai-org/GLM-5.2", Glm52},
};

}  // namespace

std::span<const Entry> GlmModels() { return kEntries; }

}  // namespace kvasir::catalogue
