#include "worker/engine/layer_pass.h"

namespace kvasir {
namespace {

// Keys per KV split, of a rank's own tokens. Part of the numerics: a row's bits depend on it, so it is one
// constant for every pass, batch and plan.
constexpr std::int64_t kSplitTokens = 128;

}  // namespace

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
  float* kv = c_.scratch.kv;
  const std::int64_t latent = layer.mla.kv_lora_rank;
  Linear(hidden_rows, layer.weights.kv_down, c_.model.hidden, layer.row_dim(), kv);
  list_.push_back(RmsNormOp{.in = kv,
                            .weight = layer.weights.kv_norm,
                            .out = kv,
                            .rows = c_.shape.rows(),
                            .cols = latent,
                            .in_stride = layer.row_dim(),
                            .out_stride = layer.row_dim(),
                            .eps = c_.model.eps});
  if (layer.mla.rotate) {
    list_.push_back(RopeOp{.x = kv + latent,
                           .positions = c_.in.positions,
                           .inv_freq = layer.weights.frequencies,
                           .rows = c_.shape.rows(),
                           .heads = 1,
                           .dim = layer.mla.rope_dim,
                           .row_stride = layer.row_dim(),
                           .head_stride = layer.mla.rope_dim,
                           .magnitude = c_.model.rope_magnitude});
  }
  list_.push_back(CacheWriteOp{.in = kv,
                               .slots = c_.in.groups[static_cast<std::size_t>(layer.group)].slots,
                               .arena = c_.arena,
                               .page = layer.page,
                               .dtype = layer.dtype,
                               .rows = c_.shape.rows(),
                               .row_elements = layer.row_dim(),
                               .in_stride = layer.row_dim()});
}

// scratch.absorbed = the rank's queries in latent space
void LayerPass::Query(const RoleLayer& layer) {
  const LayerWeights& w = layer.weights;
  const float* in = c_.scratch.normed;
  std::int64_t in_dim = c_.model.hidden;
  if (w.q_down != nullptr) {
    Linear(in, w.q_down, in_dim, layer.mla.q_lora_rank, c_.scratch.q_latent);
    Norm(c_.scratch.q_latent, w.q_norm, layer.mla.q_lora_rank, c_.scratch.q_latent);
    in = c_.scratch.q_latent;
    in_dim = layer.mla.q_lora_rank;
  }
  Linear(in, w.q_up, in_dim, layer.heads * layer.query_dim(), c_.scratch.q);
  if (layer.mla.rotate) {
    list_.push_back(RopeOp{.x = c_.scratch.q + layer.mla.nope_dim,
                           .positions = c_.in.positions,
                           .inv_freq = w.frequencies,
                           .rows = c_.shape.rows(),
                           .heads = layer.heads,
                           .dim = layer.mla.rope_dim,
                           .row_stride = layer.heads * layer.query_dim(),
                           .head_stride = layer.query_dim(),
                           .magnitude = c_.model.rope_magnitude});
  }
  list_.push_back(AbsorbQueryOp{.q = c_.scratch.q,
                                .w_uk = w.w_uk,
                                .out = c_.scratch.absorbed,
                                .rows = c_.shape.rows(),
                                .heads = layer.heads,
                                .nope = layer.mla.nope_dim,
                                .rope = layer.mla.rope_dim,
                                .latent = layer.mla.kv_lora_rank});
}

void LayerPass::Attention(const RoleLayer& layer) {
  const PassScratch& s = c_.scratch;
  const std::int64_t rows = c_.shape.rows();
  const std::int64_t latent = layer.mla.kv_lora_rank;
  const GroupInputs& group = c_.in.groups[static_cast<std::size_t>(layer.group)];
  Norm(s.x, layer.weights.attention_norm, c_.model.hidden, s.normed);
  WriteCacheRows(layer, s.normed);
  Query(layer);
  const bool gather = layer.gathered_heads != layer.heads;
  if (gather) {
    list_.push_back(GatherHeadsOp{.group = CommGroup::kContext,
                                  .in = s.absorbed,
                                  .out = s.gathered,
                                  .rows = rows,
                                  .heads_local = layer.heads,
                                  .dim = layer.row_dim()});
  }
  list_.push_back(MlaDecodeOp{.q = gather ? s.gathered : s.absorbed,
                              .arena = c_.arena,
                              .page = layer.page,
                              .dtype = layer.dtype,
                              .block_table = group.block_table,
                              .bounds = group.bounds,
                              .out = s.partial,
                              .lse = s.lse,
                              .requests = c_.shape.requests,
                              .query_rows = c_.shape.query_rows,
                              .heads = layer.gathered_heads,
                              .latent = latent,
                              .rope = layer.mla.rope_dim,
                              .table_width = group.table_width,
                              .split_tokens = kSplitTokens,
                              .scale = layer.scale});
  // A cache that every context rank holds whole needs no combine; a NaN then shows in the logits.
  const bool combine = gather || c_.model.context_ranks == 1;
  if (combine) {
    list_.push_back(CombineOp{.group = CommGroup::kContext,
                              .partial = s.partial,
                              .lse = s.lse,
                              .out = s.attended,
                              .out_lse = nullptr,
                              .fault = c_.out.fault,
                              .rows = rows,
                              .heads_local = layer.heads,
                              .dim = latent});
  }
  list_.push_back(ProjectValueOp{.in = combine ? s.attended : s.partial,
                                 .w_uv = layer.weights.w_uv,
                                 .out = s.values,
                                 .rows = rows,
                                 .heads = layer.heads,
                                 .latent = latent,
                                 .value = layer.mla.value_dim});
  const std::int64_t value_dim = layer.heads * layer.mla.value_dim;
  if (layer.weights.gate != nullptr) {
    Linear(s.normed, layer.weights.gate, c_.model.hidden, value_dim, s.gate);
    list_.push_back(SigmoidGateOp{.x = s.values, .gate = s.gate, .count = rows * value_dim});
  }
  Linear(s.values, layer.weights.out, value_dim, c_.model.hidden, s.branch);
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
