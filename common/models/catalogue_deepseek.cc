// DeepSeek-V2 to V4, and LongCat.
#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

MlaShape V3Mla(std::int64_t heads, std::int64_t q_rank) {
  return {.heads = heads,
          .q_lora_rank = q_rank,
          .kv_lora_rank = 512,
          .nope_dim = 128,
          .rope_dim = 64,
          .value_dim = 128};
}

ModelDescription V2Lite() {
  ModelDescription m =
      Make({.architecture = "DeepseekV2ForCausalLM", .hidden = 2048, .vocab = 102400, .context = 163840});
  m.rope = {.factor = 40, .original_context = 4096, .mscale = 0.707, .mscale_all_dim = 0.707};
  Add(m, 1, V3Mla(16, 0), Dense(10944));
  Add(m, 26, V3Mla(16, 0),
      {.experts = 64,
       .experts_per_token = 6,
       .shared_experts = 2,
       .expert_intermediate = 1408,
       .scoring = ExpertScoring::kSoftmax,
       .normalise = false});
  return m;
}

ModelDescription V3() {
  ModelDescription m =
      Make({.architecture = "DeepseekV3ForCausalLM", .hidden = 7168, .vocab = 129280, .context = 163840});
  m.rope = {.factor = 40, .original_context = 4096, .mscale = 1, .mscale_all_dim = 1};
  Add(m, 3, V3Mla(128, 1536), Dense(18432));
  MlpShape experts = BySigmoid(
      {.experts = 256, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 2048}, 2.5);
  experts.groups = 8;
  experts.groups_kept = 4;
  Add(m, 58, V3Mla(128, 1536), experts);
  PredictLikeLast(m);
  m.quantisation = Fp8Blocks();
  return m;
}

// V3 with an indexer in every layer.
ModelDescription V32() {
  ModelDescription m = V3();
  m.architecture = "DeepseekV32ForCausalLM";
  for (ModelLayer& layer : m.layers)
    layer.extra = {IndexerShape{.heads = 64, .head_dim = 128, .top_k = 2048}};
  PredictLikeLast(m);
  return m;
}

// What V4-Flash and V4-Pro differ in.
struct V4Size {
  std::int64_t hidden;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t q_rank;
  std::int64_t o_groups;
  std::int64_t experts;
  std::int64_t expert_width;
  std::int64_t picked;
  std::int64_t first_ratio;  // of layers 0 and 1; then 4 and 128 take turns
};

ModelLayer V4Layer(const V4Size& size, std::int64_t ratio) {
  MlaShape mla{.heads = size.heads,
               .q_lora_rank = size.q_rank,
               .kv_lora_rank = 448,
               .nope_dim = 448,
               .rope_dim = 64,
               .value_dim = 512,
               .window = 128,
               .sinks = true,
               .o_lora_rank = 1024,
               .o_groups = size.o_groups};
  ModelLayer layer;
  layer.mixer = mla;
  layer.mlp = {.experts = size.experts,
               .experts_per_token = 6,
               .shared_experts = 1,
               .expert_intermediate = size.expert_width};
  mla.window = 0;
  mla.ratio = ratio;
  if (ratio == 128) layer.extra = {mla, CompressorShape{.ratio = 128, .window = 128, .width = 1024}};
  if (ratio == 4) {
    layer.extra = {mla, IndexerShape{.heads = 64, .head_dim = 128, .top_k = size.picked, .ratio = 4},
                   CompressorShape{.ratio = 4, .window = 8, .width = 2048},
                   CompressorShape{.ratio = 4, .window = 8, .width = 512}};
  }
  return layer;
}

ModelDescription V4(const V4Size& size) {
  ModelDescription m = Make(
      {.architecture = "DeepseekV4ForCausalLM", .hidden = size.hidden, .vocab = 129280, .context = 1048576});
  m.rope = {.factor = 16, .original_context = 65536};
  for (std::int64_t i = 0; i < size.layers; ++i) {
    m.layers.push_back(V4Layer(size, i < 2 ? size.first_ratio : i % 2 == 0 ? 4 : 128));
    m.layers.back().index = static_cast<std::int32_t>(i);
  }
  PredictLikeLast(m);
  m.mtp_layers[0].extra.clear();
  m.quantisation = Fp8Blocks();
  m.quantisation.experts = {.bits = 4, .group = 32, .scale_bits = 8};
  return m;
}

ModelDescription V4Flash() { return V4({4096, 43, 64, 1024, 8, 256, 2048, 512, 0}); }
ModelDescription V4Pro() { return V4({7168, 61, 128, 1536, 16, 384, 3072, 1024, 128}); }

ModelDescription LongcatFlash() {
  ModelDescription m =
      Make({.architecture = "LongcatFlashForCausalLM", .hidden = 6144, .vocab = 131072, .context = 131072});
  m.rope.theta = 1e7;
  Add(m, 28, V3Mla(64, 1536),
      {.intermediate = 24576, .experts = 512, .experts_per_token = 12, .expert_intermediate = 2048});
  for (ModelLayer& layer : m.layers) layer.extra = {layer.mixer};
  return m;
}

constexpr Entry kEntries[] = {
    {"deepseek-r1", "deepseek-ai/DeepSeek-R1", V3},
    {"deepseek-v2-lite", "deepseek-ai/DeepSeek-V2-Lite", V2Lite},
    {"deepseek-v3", "deepseek-ai/DeepSeek-V3", V3},
    {"deepseek-v3.1", "deepseek-ai/DeepSeek-V3.1", V3},
    {"deepseek-v3.2", "deepseek-ai/DeepSeek-V3.2", V32},
    {"deepseek-v4-flash", "deepseek-ai/DeepSeek-V4-Flash", V4Flash},
    {"deepseek-v4-pro", "deepseek-ai/DeepSeek-V4-Pro", V4Pro},
    {"longcat-flash", "meituan-longcat/LongCat-Flash-Chat", LongcatFlash},
};

}  // namespace

std::span<const Entry> DeepseekModels() { return kEntries; }

}  // namespace kvasir::catalogue
