// The MLP's part of a layer: dense, or a mixture of experts with or without shared ones.
#include "worker/engine/layer_pass.h"

namespace kvasir {

// out = the rank's part of the dense MLP, or of the shared experts, over scratch.normed
void LayerPass::DenseMlp(const RoleLayer& layer, float* out) {
  const PassScratch& s = c_.scratch;
  const LayerWeights& w = layer.weights;
  Linear(s.normed, w.mlp_gate, c_.model.hidden, layer.intermediate, s.mlp_gate);
  Linear(s.normed, w.mlp_up, c_.model.hidden, layer.intermediate, s.mlp_up);
  list_.push_back(SwiGluOp{.gate = s.mlp_gate,
                           .up = s.mlp_up,
                           .out = s.mlp_gate,
                           .rows = c_.shape.rows(),
                           .cols = layer.intermediate,
                           .activation = layer.activation});
  Linear(s.mlp_gate, w.mlp_down, layer.intermediate, c_.model.hidden, out);
}

// scratch.expert_ids and expert_weights of every row
void LayerPass::Route(const RoleLayer& layer) {
  const PassScratch& s = c_.scratch;
  Linear(s.normed, layer.weights.router, c_.model.hidden, layer.mlp.experts, s.router_logits);
  list_.push_back(RouteExpertsOp{.logits = s.router_logits,
                                 .bias = layer.weights.router_bias,
                                 .ids = s.expert_ids,
                                 .weights = s.expert_weights,
                                 .fault = c_.out.fault,
                                 .score = layer.mlp.scoring == ExpertScoring::kSigmoid
                                              ? ScoreFunction::kSigmoid
                                              : ScoreFunction::kSoftmax,
                                 .normalise = layer.mlp.normalise,
                                 .scale = static_cast<float>(layer.mlp.routed_scale),
                                 .rows = c_.shape.rows(),
                                 .experts = layer.mlp.experts,
                                 .chosen = layer.mlp.experts_per_token,
                                 .groups = layer.mlp.groups,
                                 .groups_kept = layer.mlp.groups_kept});
}

// out [rows, in] = the rank's part of the chosen experts over `in`
void LayerPass::Experts(const RoleLayer& layer, const float* in, float* out) {
  list_.push_back(ExpertMlpOp{.in = in,
                              .ids = c_.scratch.expert_ids,
                              .weights = c_.scratch.expert_weights,
                              .gate = layer.weights.expert_gate,
                              .up = layer.weights.expert_up,
                              .down = layer.weights.expert_down,
                              .inner = c_.scratch.mlp_gate,
                              .out = out,
                              .rows = c_.shape.rows(),
                              .chosen = layer.mlp.experts_per_token,
                              .experts = layer.mlp.experts,
                              .dim = layer.expert_in(c_.model.hidden),
                              .width = layer.expert_width,
                              .activation = layer.activation});
}

// scratch.branch = the whole of the experts' output: ranks sum in the latent, because a norm follows there.
void LayerPass::LatentExperts(const RoleLayer& layer) {
  const PassScratch& s = c_.scratch;
  const LayerWeights& w = layer.weights;
  Linear(s.normed, w.latent_down, c_.model.hidden, layer.mlp.latent, s.latent_in);
  Experts(layer, s.latent_in, s.latent_out);
  if (layer.mlp_sharded) SumOverRanks(s.latent_out, layer.mlp.latent);
  if (w.latent_norm != nullptr) Norm(s.latent_out, w.latent_norm, layer.mlp.latent, s.latent_out);
  Linear(s.latent_out, w.latent_up, layer.mlp.latent, c_.model.hidden, s.branch);
}

void LayerPass::Mlp(const RoleLayer& layer) {
  const PassScratch& s = c_.scratch;
  const std::int64_t hidden = c_.model.hidden;
  NormStream({layer.weights.mlp_residual_norm, layer.weights.mlp_residual_proj,
              c_.model.BlocksBefore(layer.index + 1)},
             layer.weights.mlp_norm);
  if (layer.mlp.experts == 0) {
    DenseMlp(layer, s.branch);
    AddBranch(layer.mlp_sharded);
    return;
  }
  Route(layer);
  const bool latent = layer.mlp.latent > 0;
  if (latent) {
    LatentExperts(layer);
  } else {
    Experts(layer, s.normed, s.branch);
  }
  if (layer.intermediate > 0) {
    DenseMlp(layer, s.shared);
    if (latent && layer.mlp_sharded) SumOverRanks(s.shared, hidden);
    list_.push_back(AddOp{.x = s.branch, .y = s.shared, .count = c_.shape.rows() * hidden});
  }
  AddBranch(layer.mlp_sharded && !latent);
}

}  // namespace kvasir
