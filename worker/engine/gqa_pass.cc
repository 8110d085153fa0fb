// Attention over keys and values per head.
#include "worker/engine/layer_pass.h"

namespace kvasir {
namespace {

constexpr std::int64_t kSplitTokens = 128;  // as MLA's (mla_pass.cc)

}  // namespace

void LayerPass::NormAndTurn(float* x, const float* weight, std::int64_t heads, const GqaLayer& layer) {
  const std::int64_t dim = layer.shape.head_dim;
  list_.push_back(RmsNormOp{.in = x,
                            .weight = weight,
                            .out = x,
                            .rows = c_.shape.rows() * heads,
                            .cols = dim,
                            .in_stride = dim,
                            .out_stride = dim,
                            .eps = c_.model.eps});
  list_.push_back(RopeOp{.x = x,
                         .positions = c_.in.positions,
                         .inv_freq = layer.weights.frequencies,
                         .rows = c_.shape.rows(),
                         .heads = heads,
                         .dim = dim,
                         .row_stride = heads * dim,
                         .head_stride = dim,
                         .magnitude = c_.model.rope_magnitude,
                         .halves = true});
}

void LayerPass::CacheRows(const GqaLayer& layer, const GroupInputs& group, const float* hidden_rows) {
  const PassScratch& s = c_.scratch;
  const std::int64_t rows = c_.shape.rows();
  const std::int64_t keys = layer.key_width();
  Linear(hidden_rows, layer.weights.k, c_.model.hidden, keys, s.keys);
  NormAndTurn(s.keys, layer.weights.k_norm, layer.kv_heads, layer);
  list_.push_back(CopyRowsOp{.in = s.keys,
                             .out = s.kv,
                             .rows = rows,
                             .cols = keys,
                             .in_stride = keys,
                             .out_stride = layer.row_dim()});
  list_.push_back(LinearOp{.in = hidden_rows,
                           .weight = layer.weights.v,
                           .out = s.kv + keys,
                           .rows = rows,
                           .in_dim = c_.model.hidden,
                           .out_dim = layer.row_dim() - keys,
                           .in_stride = c_.model.hidden,
                           .out_stride = layer.row_dim()});
  list_.push_back(CacheWriteOp{.in = s.kv,
                               .slots = group.slots,
                               .arena = c_.arena,
                               .page = layer.page,
                               .dtype = layer.dtype,
                               .rows = rows,
                               .row_elements = layer.row_dim(),
                               .in_stride = layer.row_dim()});
}

void LayerPass::Gqa(const GqaLayer& layer, const GroupInputs& group) {
  const PassScratch& s = c_.scratch;
  CacheRows(layer, group, s.normed);
  Linear(s.normed, layer.weights.q, c_.model.hidden, layer.heads * layer.shape.head_dim, s.q);
  NormAndTurn(s.q, layer.weights.q_norm, layer.heads, layer);
  list_.push_back(GqaDecodeOp{.q = s.q,
                              .arena = c_.arena,
                              .page = layer.page,
                              .dtype = layer.dtype,
                              .block_table = group.block_table,
                              .bounds = group.bounds,
                              .out = s.values,
                              .requests = c_.shape.requests,
                              .query_rows = c_.shape.query_rows,
                              .heads = layer.heads,
                              .kv_heads = layer.kv_heads,
                              .key_dim = layer.shape.head_dim,
                              .value_dim = layer.shape.value_dim,
                              .table_width = group.table_width,
                              .split_tokens = kSplitTokens,
                              .scale = layer.scale});
  Linear(s.values, layer.weights.out, layer.heads * layer.shape.value_dim, c_.model.hidden, s.branch);
}

}  // namespace kvasir
