#include "worker/engine/chain_pass.h"

#include <cstddef>

namespace kvasir {
namespace {

// scratch.previous = the states that in.previous points at
void TakeStates(const PassContext& c, LaunchList& list) {
  list.push_back(EmbedOp{.ids = c.in.previous,
                         .table = c.out.carries,
                         .out = c.scratch.previous,
                         .rows = c.shape.rows(),
                         .hidden = c.model.hidden,
                         .vocab = c.out.seats + c.shape.rows()});
}

// scratch.x = the tokens embedded in it and scratch.previous, joined
void JoinPair(const PassContext& c, LaunchList& list) {
  const std::int64_t hidden = c.model.hidden;
  const auto norm = [&](const float* in, const float* weight, float* out) {
    list.push_back(RmsNormOp{.in = in,
                             .weight = weight,
                             .out = out,
                             .rows = c.shape.rows(),
                             .cols = hidden,
                             .in_stride = hidden,
                             .out_stride = 2 * hidden,
                             .eps = c.model.eps});
  };
  norm(c.scratch.x, c.model.token_norm, c.scratch.pair);
  norm(c.scratch.previous, c.model.state_norm, c.scratch.pair + hidden);
  list.push_back(LinearOp{.in = c.scratch.pair,
                          .weight = c.model.pair_proj,
                          .out = c.scratch.x,
                          .rows = c.shape.rows(),
                          .in_dim = 2 * hidden,
                          .out_dim = hidden,
                          .in_stride = 2 * hidden,
                          .out_stride = hidden});
}

// scratch.previous = the state behind the layers of the row before
void KeepState(const PassContext& c, LaunchList& list) {
  list.push_back(CopyRowsOp{.in = c.scratch.x,
                            .out = c.scratch.previous,
                            .rows = c.shape.rows(),
                            .cols = c.model.hidden,
                            .in_stride = c.model.hidden,
                            .out_stride = c.model.hidden});
}

// The inputs of row k of all requests; its token is the one that row k - 1 drafted.
PassInputs InputsOfRow(const PassContext& c, std::int64_t k) {
  const std::int64_t first = k * c.shape.requests;
  PassInputs in = c.in;
  if (k > 0) in.token_ids = c.out.drafted + first - c.shape.requests;
  in.positions += first;
  in.draws += first;
  for (GroupInputs& group : in.groups) {
    if (group.slots == nullptr) continue;
    group.slots += first;
    group.bounds += first;
  }
  return in;
}

PassOutputs OutputsOfRow(const PassContext& c, std::int64_t k) {
  PassOutputs out = c.out;
  out.logits += k * c.shape.requests * c.model.vocab;
  out.drafted += k * c.shape.requests;
  return out;
}

void WriteRow(const PassContext& c, bool first, LaunchList& list) {
  LayerPass pass(c, list);
  if (first) {
    TakeStates(c, list);
  } else {
    KeepState(c, list);
  }
  pass.Embed();
  JoinPair(c, list);
  for (const RoleLayer& layer : c.model.layers) {
    pass.Mix(layer);
    pass.Mlp(layer);
  }
  pass.FinalNorm();
  pass.Logits(c.model.head, c.out.logits);
  list.push_back(MarkovChainOp{.base = c.out.logits,
                               .w1 = nullptr,
                               .w2 = nullptr,
                               .anchors = c.in.anchors,
                               .logits = c.out.logits,
                               .drafted = c.out.drafted,
                               .fault = c.out.fault,
                               .requests = c.shape.requests,
                               .query_rows = 1,
                               .vocab = c.model.vocab,
                               .rank = 0,
                               .temperatures = c.in.temperatures,
                               .draws = c.in.draws});
}

}  // namespace

LaunchList WriteChainContextPass(const PassContext& context) {
  LaunchList list;
  LayerPass pass(context, list);
  const std::int64_t hidden = context.model.hidden;
  const std::int64_t row_bytes = hidden * static_cast<std::int64_t>(sizeof(float));
  TakeStates(context, list);
  pass.Embed();
  JoinPair(context, list);
  // What lies in the cache depends on a row's own input alone, where there is one layer.
  pass.WriteOwnCacheRows(context.model.layers.front());
  list.push_back(CacheWriteOp{
      .in = context.out.taps,
      .slots = context.in.carried,
      .arena = reinterpret_cast<std::byte*>(context.out.carries),
      .page = {.stride_bytes = row_bytes, .layer_offset_bytes = 0, .block_tokens = 1, .row_bytes = row_bytes},
      .dtype = DType::kF32,
      .rows = context.shape.rows(),
      .row_elements = hidden,
      .in_stride = hidden});
  return list;
}

LaunchList WriteChainBlockPass(const PassContext& context) {
  LaunchList list;
  const PassShape row_shape{.pass = context.shape.pass, .requests = context.shape.requests, .query_rows = 1};
  for (std::int64_t k = 0; k < context.shape.query_rows; ++k) {
    const PassInputs in = InputsOfRow(context, k);
    const PassOutputs out = OutputsOfRow(context, k);
    WriteRow({context.model, context.scratch, context.arena, row_shape, in, out}, k == 0, list);
  }
  return list;
}

}  // namespace kvasir
