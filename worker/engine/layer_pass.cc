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

void LayerPass::WriteCacheRows(const RoleLayer& layer, const float* hidden_rows) {
  const GroupInputs& group = c_.in.groups[static_cast<std::size_t>(layer.group)];
  if (const auto* gqa = std::get_if<GqaLayer>(&layer.mixer)) {
    CacheRows(*gqa, group, hidden_rows);
  } else {
    CacheRows(layer.mla(), group, hidden_rows);
  }
}

void LayerPass::NormStream(const Mixture& mixture, const float* weight) {
  const PassScratch& s = c_.scratch;
  if (mixture.norm == nullptr) return Norm(s.x, weight, c_.model.hidden, s.normed);
  list_.push_back(MixResidualsOp{.x = s.x,
                                 .blocks = s.residual_blocks,
                                 .norm = mixture.norm,
                                 .proj = mixture.proj,
                                 .out = s.normed,
                                 .rows = c_.shape.rows(),
                                 .cols = c_.model.hidden,
                                 .count = mixture.blocks,
                                 .eps = c_.model.eps});
  Norm(s.normed, weight, c_.model.hidden, s.normed);
}

void LayerPass::Copy(const float* in, float* out) {
  list_.push_back(CopyRowsOp{.in = in,
                             .out = out,
                             .rows = c_.shape.rows(),
                             .cols = c_.model.hidden,
                             .in_stride = c_.model.hidden,
                             .out_stride = c_.model.hidden});
}

void LayerPass::Mix(const RoleLayer& layer) {
  const PassScratch& s = c_.scratch;
  const std::int64_t before = c_.model.BlocksBefore(layer.index);
  NormStream({layer.weights.attention_residual_norm, layer.weights.attention_residual_proj, before},
             layer.weights.attention_norm);
  const GroupInputs& group = c_.in.groups[static_cast<std::size_t>(layer.group)];
  if (const auto* kda = std::get_if<KdaLayer>(&layer.mixer)) {
    Kda(*kda, group);
  } else if (const auto* gqa = std::get_if<GqaLayer>(&layer.mixer)) {
    Gqa(*gqa, group);
  } else {
    Mla(layer.mla(), group);
  }
  if (c_.model.residual_block > 0 && layer.index % c_.model.residual_block == 0) {
    Copy(s.x, s.residual_blocks + before * c_.shape.rows() * c_.model.hidden);
    SumOverRanks(s.branch, c_.model.hidden);
    Copy(s.branch, s.x);
    return;
  }
  AddBranch(/*sharded=*/true);
}

void LayerPass::WriteOwnCacheRows(const RoleLayer& layer) {
  Norm(c_.scratch.x, layer.weights.attention_norm, c_.model.hidden, c_.scratch.normed);
  WriteCacheRows(layer, c_.scratch.normed);
}

void LayerPass::FinalNorm() {
  const auto layers = static_cast<std::int64_t>(c_.model.layers.size());
  NormStream({c_.model.output_residual_norm, c_.model.output_residual_proj, c_.model.BlocksBefore(layers)},
             c_.model.final_norm);
}

void LayerPass::Logits(const float* head, float* logits) {
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
