// One small model of each family whose tensors have names.
#ifndef KVASIR_TESTS_COMMON_CHECKPOINT_SMALL_MODELS_H_
#define KVASIR_TESTS_COMMON_CHECKPOINT_SMALL_MODELS_H_

#include <vector>

#include "common/models/draft_of.h"
#include "common/models/model_description.h"

namespace kvasir::testing {

inline constexpr MlaShape kSmallMla{
    .heads = 2, .q_lora_rank = 6, .kv_lora_rank = 8, .nope_dim = 4, .rope_dim = 2, .value_dim = 3};
inline constexpr MlpShape kSmallDense{.intermediate = 12};
inline constexpr MlpShape kSmallExperts{
    .experts = 3, .experts_per_token = 2, .shared_experts = 2, .expert_intermediate = 5};

// Chosen by sigmoid scores and a correction bias, as the Kimi family does.
inline MlpShape SmallSigmoidExperts() {
  MlpShape experts = kSmallExperts;
  experts.scoring = ExpertScoring::kSigmoid;
  experts.correction_bias = true;
  return experts;
}

inline ModelDescription SmallModel(std::string architecture, const std::vector<ModelLayer>& layers) {
  ModelDescription model;
  model.name = "small";
  model.architecture = std::move(architecture);
  model.hidden = 10;
  model.vocab = 20;
  model.context = 64;
  model.layers = layers;
  return model;
}

// A dense layer, then one with experts.
inline ModelDescription SmallDeepseek() {
  return SmallModel("DeepseekV3ForCausalLM", {{0, kSmallMla, kSmallDense}, {1, kSmallMla, kSmallExperts}});
}

// KDA with a dense MLP, then NoPE MLA without q-LoRA, with experts.
inline ModelDescription SmallKimiLinear() {
  MlaShape mla = kSmallMla;
  mla.q_lora_rank = 0;
  mla.rotate = false;
  return SmallModel("KimiLinearForCausalLM",
                    {{0, KdaShape{.heads = 2, .head_dim = 4, .conv_kernel = 3}, kSmallDense},
                     {1, mla, SmallSigmoidExperts()}});
}

// A full-rank gate, an output gate, experts in a latent space.
inline ModelDescription SmallKimiK3() {
  MlaShape mla = kSmallMla;
  mla.rotate = false;
  mla.output_gate = true;
  MlpShape experts = SmallSigmoidExperts();
  experts.latent = 7;
  ModelDescription model = SmallModel(
      "KimiK3ForConditionalGeneration",
      {{0, KdaShape{.heads = 2, .head_dim = 4, .conv_kernel = 3, .full_rank_gate = true}, kSmallDense},
       {1, mla, experts}});
  model.residual_block = 2;
  model.multimodal = true;
  return model;
}

inline ModelDescription SmallK3Dspark(MarkovHead head = MarkovHead::kVanilla) {
  ModelDescription model = SmallModel("K3DSparkModel", {{0, kSmallMla, kSmallDense}});
  model.draft = DraftShape{.target_taps = {0, 1},
                           .target_hidden = 10,
                           .target_layers = 2,
                           .markov_rank = 4,
                           .confidence_head = true,
                           .own_embedding = true,
                           .markov_head = head};
  return model;
}

// The module of multi-token prediction of SmallDeepseek.
inline ModelDescription SmallMtp() {
  ModelDescription target = SmallDeepseek();
  target.mtp_depth = 1;
  target.mtp_layers = {{0, kSmallMla, kSmallExperts}};
  return *MtpDraft(target);
}

inline ModelDescription SmallDflash() {
  ModelDescription model = SmallModel(
      "DFlashDraftModel",
      {{0, AttentionShape{.heads = 4, .kv_heads = 2, .head_dim = 3, .value_dim = 3}, kSmallDense}});
  model.draft = DraftShape{.method = DraftMethod::kDflash, .target_taps = {0, 1, 2}, .target_hidden = 9};
  return model;
}

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_COMMON_CHECKPOINT_SMALL_MODELS_H_
