// MLA in absorbed form, over the DCP group where the cache is sharded over context (model_pass.h).
#include "worker/engine/layer_pass.h"

namespace kvasir {
namespace {

// Keys per KV split, of a rank's own tokens. Part of the numerics: a row's bits depend on it, so it is one
// constant for every pass, batch and plan.
constexpr std::int64_t kSplitTokens = 128;

}  // namespace

void LayerPass::CacheRows(const MlaLayer& layer, const GroupInputs& group, const float* hidden_rows) {
  float* kv = c_.scratch.kv;
  const std::int64_t latent = layer.shape.kv_lora_rank;
  Linear(hidden_rows, layer.weights.kv_down, c_.model.hidden, layer.row_dim(), kv);
  list_.push_back(RmsNormOp{.in = kv,
                            .weight = layer.weights.kv_norm,
                            .out = kv,
                            .rows = c_.shape.rows(),
                            .cols = latent,
                            .in_stride = layer.row_dim(),
                            .out_stride = layer.row_dim(),
                            .eps = c_.model.eps});
  if (layer.shape.rotate) {
    list_.push_back(RopeOp{.x = kv + latent,
                           .positions = c_.in.positions,
                           .inv_freq = layer.weights.frequencies,
                           .rows = c_.shape.rows(),
                           .heads = 1,
                           .dim = layer.shape.rope_dim,
                           .row_stride = layer.row_dim(),
                           .head_stride = layer.shape.rope_dim,
                           .magnitude = c_.model.rope_magnitude});
  }
  list_.push_back(CacheWriteOp{.in = kv,
                               .slots = group.slots,
                               .arena = c_.arena,
                               .page = layer.page,
                               .dtype = layer.dtype,
                               .rows = c_.shape.rows(),
                               .row_elements = layer.row_dim(),
                               .in_stride = layer.row_dim()});
}

// scratch.absorbed = the rank's queries in latent space
void LayerPass::Query(const MlaLayer& layer) {
  const MlaWeights& w = layer.weights;
  const float* in = c_.scratch.normed;
  std::int64_t in_dim = c_.model.hidden;
  if (w.q_down != nullptr) {
    Linear(in, w.q_down, in_dim, layer.shape.q_lora_rank, c_.scratch.q_latent);
    Norm(c_.scratch.q_latent, w.q_norm, layer.shape.q_lora_rank, c_.scratch.q_latent);
    in = c_.scratch.q_latent;
    in_dim = layer.shape.q_lora_rank;
  }
  Linear(in, w.q_up, in_dim, layer.heads * layer.query_dim(), c_.scratch.q);
  if (layer.shape.rotate) {
    list_.push_back(RopeOp{.x = c_.scratch.q + layer.shape.nope_dim,
                           .positions = c_.in.positions,
                           .inv_freq = w.frequencies,
                           .rows = c_.shape.rows(),
                           .heads = layer.heads,
                           .dim = layer.shape.rope_dim,
                           .row_stride = layer.heads * layer.query_dim(),
                           .head_stride = layer.query_dim(),
                           .magnitude = c_.model.rope_magnitude});
  }
  list_.push_back(AbsorbQueryOp{.q = c_.scratch.q,
                                .w_uk = w.w_uk,
                                .out = c_.scratch.absorbed,
                                .rows = c_.shape.rows(),
                                .heads = layer.heads,
                                .nope = layer.shape.nope_dim,
                                .rope = layer.shape.rope_dim,
                                .latent = layer.shape.kv_lora_rank});
}

void LayerPass::Mla(const MlaLayer& layer, const GroupInputs& group) {
  const PassScratch& s = c_.scratch;
  const std::int64_t rows = c_.shape.rows();
  const std::int64_t latent = layer.shape.kv_lora_rank;
  CacheRows(layer, group, s.normed);
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
                              .rope = layer.shape.rope_dim,
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
                                 .value = layer.shape.value_dim});
  const std::int64_t value_dim = layer.heads * layer.shape.value_dim;
  if (layer.weights.gate != nullptr) {
    Linear(s.normed, layer.weights.gate, c_.model.hidden, value_dim, s.gate);
    list_.push_back(SigmoidGateOp{.x = s.values, .gate = s.gate, .count = rows * value_dim});
  }
  Linear(s.values, layer.weights.out, value_dim, c_.model.hidden, s.branch);
}

}  // namespace kvasir
