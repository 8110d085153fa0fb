#include "tests/testing/engine_models.h"

#include <cstddef>
#include <utility>

#include "common/models/draft_of.h"

namespace kvasir::testing {
namespace {

MlaShape SmallMla(std::int64_t q_lora_rank) {
  return MlaShape{.heads = 8,
                  .q_lora_rank = q_lora_rank,
                  .kv_lora_rank = 16,
                  .nope_dim = 8,
                  .rope_dim = 8,
                  .value_dim = 8};
}

ModelDescription SmallModel(std::string name, std::int64_t layers, std::int64_t q_lora_rank) {
  ModelDescription model;
  model.name = std::move(name);
  model.architecture = "DeepseekV3ForCausalLM";
  model.hidden = 32;
  model.vocab = kSmallVocab;
  model.context = 1024;
  for (std::int64_t i = 0; i < layers; ++i) {
    model.layers.push_back(ModelLayer{.index = static_cast<std::int32_t>(i),
                                      .mixer = SmallMla(q_lora_rank),
                                      .mlp = MlpShape{.intermediate = 48}});
  }
  return model;
}

MlpShape SmallExperts() {
  return {.experts = 8,
          .experts_per_token = 3,
          .shared_experts = 1,
          .expert_intermediate = 16,
          .scoring = ExpertScoring::kSigmoid,
          .correction_bias = true,
          .groups = 4,
          .groups_kept = 2,
          .routed_scale = 2.5};
}

}  // namespace

ModelDescription SmallTarget() { return SmallModel("test/small-target", 2, 24); }

ModelDescription SmallExpertsTarget() {
  ModelDescription model = SmallTarget();
  model.name = "test/small-experts";
  model.layers[1].mlp = SmallExperts();
  return model;
}

ModelDescription SmallDraft(MarkovHead head) {
  const std::string name = head == MarkovHead::kVanilla ? "test/small-draft"
                           : head == MarkovHead::kGated ? "test/small-draft-gated"
                                                        : "test/small-draft-rnn";
  ModelDescription model = SmallModel(name, 2, 0);
  model.architecture = "DSparkDraftModel";
  model.draft = DraftShape{.causal = false,
                           .target_taps = {0, 1},
                           .target_hidden = 32,
                           .target_layers = 2,
                           .mask_token = kSmallVocab - 1,
                           .markov_rank = 8,
                           .confidence_head = true};
  model.draft->markov_head = head;
  return model;
}

ModelDescription SmallDflash() {
  ModelDescription model = SmallModel("test/small-dflash", 2, 0);
  model.architecture = "DFlashDraftModel";
  for (ModelLayer& layer : model.layers) {
    layer.mixer = AttentionShape{.heads = 8, .kv_heads = 2, .head_dim = 8, .value_dim = 8};
  }
  model.draft = DraftShape{.method = DraftMethod::kDflash,
                           .causal = false,
                           .target_taps = {0, 1},
                           .target_hidden = 32,
                           .target_layers = 2,
                           .mask_token = kSmallVocab - 1};
  return model;
}

ModelDescription HybridTarget() {
  ModelDescription model = SmallModel("test/hybrid-target", 4, 24);
  model.architecture = "KimiLinearForCausalLM";
  const KdaShape kda{.heads = 8, .head_dim = 8, .conv_kernel = 4};
  KdaShape bounded = kda;
  bounded.full_rank_gate = true;
  bounded.gate_lower_bound = -5;
  model.layers[0].mixer = kda;
  std::get<MlaShape>(model.layers[1].mixer).rotate = false;
  model.layers[2].mixer = bounded;
  model.layers[3].mixer = kda;
  return model;
}

ModelDescription HybridDraft() {
  ModelDescription model = SmallDraft();
  model.name = "test/hybrid-draft";
  model.draft->target_taps = {1, 3};
  model.draft->target_layers = 4;
  return model;
}

ModelDescription HybridExpertsTarget() {
  ModelDescription model = HybridTarget();
  model.name = "test/hybrid-experts";
  model.residual_block = 3;
  for (std::size_t i = 1; i < model.layers.size(); ++i) model.layers[i].mlp = SmallExperts();
  return model;
}

ModelDescription MtpOf(ModelDescription target) {
  ModelLayer layer{.index = 0, .mixer = SmallMla(24), .mlp = target.layers.back().mlp};
  target.mtp_depth = 1;
  target.mtp_layers = {layer};
  return *MtpDraft(target);
}

ModelDescription TargetOf(const Plan& plan) {
  for (const auto make : {SmallTarget, SmallExpertsTarget, HybridTarget}) {
    if (ModelDescription model = make(); model.name == plan.target.name) return model;
  }
  return HybridExpertsTarget();
}

ModelDescription DraftOf(const Plan& plan) {
  for (const MarkovHead head : {MarkovHead::kVanilla, MarkovHead::kGated, MarkovHead::kRnn}) {
    if (ModelDescription model = SmallDraft(head); model.name == plan.draft.name) return model;
  }
  if (plan.draft.name == SmallDflash().name) return SmallDflash();
  if (plan.draft.name.ends_with("-mtp")) return MtpOf(TargetOf(plan));
  return HybridDraft();
}

}  // namespace kvasir::testing
