// Kimi-K2 to K3 and Kimi-Linear.
#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

MlaShape Mla(std::int64_t heads, std::int64_t q_rank) {
  return {.heads = heads,
          .q_lora_rank = q_rank,
          .kv_lora_rank = 512,
          .nope_dim = 128,
          .rope_dim = 64,
          .value_dim = 128};
}

// MLA layers are every fourth and the last; the others are KDA.
void MixKda(ModelDescription& model, const KdaShape& kda) {
  for (ModelLayer& layer : model.layers) {
    const bool last = static_cast<std::size_t>(layer.index) + 1 == model.layers.size();
    if (layer.index % 4 != 3 && !last) layer.mixer = kda;
  }
}

ModelDescription K3() {
  ModelDescription m = Make({.architecture = "KimiK3ForConditionalGeneration",
                             .hidden = 7168,
                             .vocab = 163840,
                             .context = 1048576,
                             .eps = 1e-5,
                             .multimodal = true});
  MlaShape mla = Mla(96, 1536);
  mla.rotate = false;
  mla.output_gate = true;
  Add(m, 1, mla, Dense(33792));
  MlpShape experts = BySigmoid({.experts = 896,
                                .experts_per_token = 16,
                                .shared_experts = 2,
                                .expert_intermediate = 3072,
                                .latent = 3584},
                               1.0);
  experts.latent_norm = true;
  Add(m, 92, mla, experts);
  for (ModelLayer& layer : m.layers) {
    layer.mlp.situ_beta = 4;
    layer.mlp.situ_linear_beta = 25;
  }
  m.residual_block = 12;
  MixKda(m,
         {.heads = 96, .head_dim = 128, .conv_kernel = 4, .full_rank_gate = true, .gate_lower_bound = -5.0});
  m.quantisation = FourBitExperts("compressed-tensors", 8);
  return m;
}

ModelDescription Linear48B() {
  ModelDescription m = Make({.architecture = "KimiLinearForCausalLM",
                             .hidden = 2304,
                             .vocab = 163840,
                             .context = 1048576,
                             .eps = 1e-5});
  MlaShape mla = Mla(32, 0);
  mla.rotate = false;
  Add(m, 1, mla, Dense(9216));
  Add(m, 26, mla,
      BySigmoid({.experts = 256, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 1024},
                2.446));
  MixKda(m, {.heads = 32, .head_dim = 128, .conv_kernel = 4});
  return m;
}

ModelDescription K2Layers(const Frame& frame) {
  ModelDescription m = Make(frame);
  Add(m, 1, Mla(64, 1536), Dense(18432));
  Add(m, 60, Mla(64, 1536),
      BySigmoid({.experts = 384, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 2048},
                2.827));
  return m;
}

ModelDescription K2() {
  ModelDescription m =
      K2Layers({.architecture = "DeepseekV3ForCausalLM", .hidden = 7168, .vocab = 163840, .context = 131072});
  m.rope = {.theta = 50000,
            .factor = 32,
            .original_context = 4096,
            .beta_fast = 1,
            .beta_slow = 1,
            .mscale = 1,
            .mscale_all_dim = 1};
  m.quantisation = Fp8Blocks();
  return m;
}

ModelDescription K25() {
  ModelDescription m = K2Layers({.architecture = "KimiK25ForConditionalGeneration",
                                 .hidden = 7168,
                                 .vocab = 163840,
                                 .context = 262144,
                                 .eps = 1e-5,
                                 .multimodal = true});
  m.rope = {.theta = 50000, .factor = 64, .original_context = 4096, .mscale = 1, .mscale_all_dim = 1};
  m.quantisation = FourBitExperts("compressed-tensors", 16);
  return m;
}

constexpr Entry kEntries[] = {
    {"kimi-k2", "moonshotai/Kimi-K2-Instruct", K2},
    {"kimi-k2.5", "moonshotai/Kimi-K2.5", K25},
    {"kimi-k3", "moonshotai/Kimi-K3", K3},
    {"kimi-linear-48b", "moonshotai/Kimi-Linear-48B-A3B-Instruct", Linear48B},
};

}  // namespace

std::span<const Entry> KimiModels() { return kEntries; }

}  // namespace kvasir::catalogue
