#include "worker/engine/layer_pass.h"

#include <variant>

namespace kvasir {
void LayerPass::Norm(const float* in, const float* weight, std::int64_t cols, float* out) {
  list_.push_back(RmsNormOp{.in = in,
                            .weight = weight,
                            .out = out,
                            .rows = c_.shape.rows(),
                            .cols = cols,
                            .in_stride = cols,
                            .out_stride = cols,
                            .eps = c_.model.eps});
}

void LayerPass::Linear(const float* in, const float* weight, std::int64_t in_dim, std::int64_t out_dim,
                       float* out) {
  list_.push_back(LinearOp{.in = in,
                           .weight = weight,
                           .out = out,
                           .rows = c_.shape.rows(),
                           .in_dim = in_dim,
                           .out_dim = out_dim,
                           .in_stride = in_dim,
                           .out_stride = out_dim});
}

void LayerPass::AddBranch(bool sharded) {
  const std::int64_t count = c_.shape.rows() * c_.model.hidden;
  if (sharded && c_.model.tensor_ranks > 1) {
    list_.push_back(AllReduceOp{.group = CommGroup::kTensor, .x = c_.scratch.branch, .count = count});
  }
  list_.push_back(AddOp{.x = c_.scratch.x, .y = c_.scratch.branch, .count = count});
}

void LayerPass::Embed() {
  list_.push_back(EmbedOp{.ids = c_.in.token_ids,
                          .table = c_.model.embedding,
                          .out = c_.scratch.x,
                          .rows = c_.shape.rows(),
                          .hidden = c_.model.hidden,
                          .vocab = c_.model.vocab});
}

void LayerPass::Mix(const RoleLayer& layer) {
  Norm(c_.scratch.x, layer.weights.attention_norm, c_.model.hidden, c_.scratch.normed);
  const GroupInputs& group = c_.in.groups[static_cast<std::size_t>(layer.group)];
  if (const auto* kda = std::get_if<KdaLayer>(&layer.mixer)) {
    Kda(*kda, group);
  } else {
    Mla(layer.mla(), group);
  }
  AddBranch(/*sharded=*/true);
}

void LayerPass::Mlp(const RoleLayer& layer) {
  const PassScratch& s = c_.scratch;
  const LayerWeights& w = layer.weights;
  Norm(s.x, w.mlp_norm, c_.model.hidden, s.normed);
  Linear(s.normed, w.mlp_gate, c_.model.hidden, layer.intermediate, s.mlp_gate);
  Linear(s.normed, w.mlp_up, c_.model.hidden, layer.intermediate, s.mlp_up);
  list_.push_back(SwiGluOp{.gate = s.mlp_gate,
                           .up = s.mlp_up,
                           .out = s.mlp_gate,
                           .rows = c_.shape.rows(),
                           .cols = layer.intermediate});
  Linear(s.mlp_gate, w.mlp_down, layer.intermediate, c_.model.hidden, s.branch);
  AddBranch(layer.mlp_sharded);
}

void LayerPass::Head(const float* head, float* logits) {
  Norm(c_.scratch.x, c_.model.final_norm, c_.model.hidden, c_.scratch.normed);
  const bool sharded = c_.model.vocab_local != c_.model.vocab;
  Linear(c_.scratch.normed, head, c_.model.hidden, c_.model.vocab_local,
         sharded ? c_.scratch.local_logits : logits);
  if (!sharded) return;
  list_.push_back(GatherColumnsOp{.group = CommGroup::kTensor,
                                  .in = c_.scratch.local_logits,
                                  .out = logits,
                                  .rows = c_.shape.rows(),
                                  .cols_local = c_.model.vocab_local});
}

}  // namespace kvasir
