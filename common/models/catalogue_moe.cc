// Mixtures of experts with grouped-query attention that belong to no larger family.
#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

ModelDescription GptOss(std::int64_t layers, std::int64_t experts) {
  ModelDescription m = Make(
      {.architecture = "GptOssForCausalLM", .hidden = 2880, .vocab = 201088, .context = 131072, .eps = 1e-5});
  m.rope = {.theta = 150000, .factor = 32, .original_context = 4096};
  AttentionShape attention = Heads(64, 8, 64);
  attention.sinks = true;
  AddAlternating(m, layers, 2, Windowed(attention, 128), attention,
                 {.experts = experts, .experts_per_token = 4, .expert_intermediate = 2880});
  m.quantisation = FourBitExperts("mxfp4", 8);
  return m;
}

ModelDescription MinimaxM2(std::int64_t context) {
  ModelDescription m = Make({.architecture = "MiniMaxM2ForCausalLM",
                             .hidden = 3072,
                             .vocab = 200064,
                             .context = context,
                             .theta = 5e6});
  Add(m, 62, Heads(48, 8, 128), {.experts = 256, .experts_per_token = 8, .expert_intermediate = 1536});
  m.quantisation = Fp8Blocks();
  return m;
}

ModelDescription MinimaxM3() {
  ModelDescription m = Make({.architecture = "MiniMaxM3ForCausalLM",
                             .hidden = 6144,
                             .vocab = 200064,
                             .context = 1048576,
                             .theta = 5e6});
  m.rope.partial = 0.5;
  Add(m, 3, Heads(64, 4, 128), Dense(12288));
  Add(m, 57, Heads(64, 4, 128),
      {.experts = 128, .experts_per_token = 4, .shared_experts = 1, .expert_intermediate = 3072});
  PredictLikeLast(m);
  const IndexerShape indexer{.heads = 4, .head_dim = 128, .top_k = 16, .block = 128, .fp8_keys = false};
  for (ModelLayer& layer : m.layers) {
    if (layer.index >= 3) layer.extra = {indexer};
  }
  return m;
}

// Full layers are the first, then every sixth.
ModelDescription MimoV2Flash() {
  ModelDescription m = Make({.architecture = "MiMoV2FlashForCausalLM",
                             .hidden = 4096,
                             .vocab = 152576,
                             .context = 262144,
                             .eps = 1e-5,
                             .theta = 5e6});
  m.rope.partial = 0.334;
  m.rope.local_theta = 10000;
  AttentionShape full = Heads(64, 4, 192);
  full.value_dim = 128;
  AttentionShape sliding = Windowed(full, 128);
  sliding.kv_heads = 8;
  sliding.sinks = true;
  AddAlternating(m, 48, 6, sliding, full,
                 {.experts = 256, .experts_per_token = 8, .expert_intermediate = 2048});
  m.layers[0].mixer = full;
  m.layers[0].mlp = Dense(16384);
  m.quantisation = Fp8Blocks();
  return m;
}

// A full layer, then three with a window, and so on through the layers that predict.
ModelDescription Step37Flash() {
  ModelDescription m =
      Make({.architecture = "Step3p7FlashForCausalLM", .hidden = 4096, .vocab = 128896, .context = 65536});
  const MlpShape experts{
      .experts = 288, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 1280};
  const AttentionShape full = Heads(64, 8, 128);
  for (std::int64_t i = 0; i < 45; ++i)
    Add(m, 1, i % 4 == 0 ? full : Windowed(full, 512), i < 3 ? Dense(11264) : experts);
  ModelDescription ahead;
  Add(ahead, 3, Windowed(full, 512), experts);
  m.mtp_depth = 3;
  m.mtp_layers = ahead.layers;
  return m;
}

ModelDescription Dots1() {
  ModelDescription m = Make(
      {.architecture = "Dots1ForCausalLM", .hidden = 4096, .vocab = 152064, .context = 32768, .theta = 1e7});
  Add(m, 1, Heads(32, 32, 128), Dense(10944));
  Add(m, 61, Heads(32, 32, 128),
      {.experts = 128, .experts_per_token = 6, .shared_experts = 2, .expert_intermediate = 1408});
  return m;
}

constexpr Entry kEntries[] = {
    {"gpt-oss-20b", "openai/gpt-oss-20b", [] { return GptOss(24, 32); }},
    {"gpt-oss-120b", "openai/gpt-oss-120b", [] { return GptOss(36, 128); }},
    {"minimax-m2.5", "MiniMaxAI/MiniMax-M2.5", [] { return MinimaxM2(196608); }},
    {"minimax-m2.7", "MiniMaxAI/MiniMax-M2.7", [] { return MinimaxM2(204800); }},
    {"minimax-m3", "MiniMaxAI/MiniMax-M3", MinimaxM3},
    {"mimo-v2-flash", "XiaomiMiMo/MiMo-V2-Flash", MimoV2Flash},
    {"step-3.7-flash", "stepfun-ai/Step-3.7-Flash", Step37Flash},
    {"dots1", "rednote-hilab/dots.llm1.inst", Dots1},
};

}  // namespace

std::span<const Entry> MoeModels() { return kEntries; }

}  // namespace kvasir::catalogue
