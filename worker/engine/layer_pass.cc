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

void LayerPass::SumOverRanks(float* x, std::int64_t cols) {
  if (c_.model.tensor_ranks == 1) return;
  list_.push_back(AllReduceOp{.group = CommGroup::kTensor, .x = x, .count = c_.shape.rows() * cols});
}

void LayerPass::AddBranch(bool sharded) {
  if (sharded) SumOverRanks(c_.scratch.branch, c_.model.hidden);
  list_.push_back(
      AddOp{.x = c_.scratch.x, .y = c_.scratch.branch, .count = c_.shape.rows() * c_.model.hidden});
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
