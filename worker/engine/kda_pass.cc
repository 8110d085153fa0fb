// Kimi Delta Attention as operations: q, k, v through their short convolutions, the decay and output gates
// from the layer's input, the delta rule over the sequence's state, and a gated norm of each head's output.
#include <cmath>

#include "worker/engine/layer_pass.h"

namespace kvasir {
namespace {

constexpr float kL2NormEps = 1e-6F;

}  // namespace

// The accepted drafts of the step before, while the history still has their inputs.
void LayerPass::Replay(const KdaLayer& layer, const GroupInputs& group) {
  const std::int64_t width = layer.width();
  list_.push_back(KdaReplayOp{.k_weight = layer.weights.k_conv,
                              .v_weight = layer.weights.v_conv,
                              .arena = c_.arena,
                              .conv = layer.conv,
                              .dtype = layer.dtype,
                              .kernel = layer.shape.conv_kernel,
                              .history = layer.history,
                              .history_stride = 3 * width,
                              .k_begin = width,
                              .v_begin = 2 * width,
                              .state = layer.state,
                              .ring_decay = layer.ring_decay,
                              .ring_beta = layer.ring_beta,
                              .block_table = group.block_table,
                              .bounds = group.bounds,
                              .reads = group.reads,
                              .replays = group.replays,
                              .requests = c_.shape.requests,
                              .query_rows = c_.shape.query_rows,
                              .heads = layer.heads,
                              .dim = layer.shape.head_dim,
                              .table_width = group.table_width,
                              .eps = kL2NormEps});
}

// scratch.qkv = the convolved, activated and normalised queries, keys and values
void LayerPass::Convolve(const KdaLayer& layer, const GroupInputs& group) {
  const KdaWeights& w = layer.weights;
  const std::int64_t width = layer.width();
  const float* projections[] = {w.q, w.k, w.v};
  const float* kernels[] = {w.q_conv, w.k_conv, w.v_conv};
  for (std::int64_t i = 0; i < 3; ++i) {
    float* x = c_.scratch.qkv + i * width;
    list_.push_back(LinearOp{.in = c_.scratch.normed,
                             .weight = projections[i],
                             .out = x,
                             .rows = c_.shape.rows(),
                             .in_dim = c_.model.hidden,
                             .out_dim = width,
                             .in_stride = c_.model.hidden,
                             .out_stride = 3 * width});
    list_.push_back(ShortConvOp{.x = x,
                                .weight = kernels[i],
                                .arena = c_.arena,
                                .state = layer.conv,
                                .dtype = layer.dtype,
                                .block_table = group.block_table,
                                .bounds = group.bounds,
                                .requests = c_.shape.requests,
                                .query_rows = c_.shape.query_rows,
                                .channels = width,
                                .row_stride = 3 * width,
                                .kernel = layer.shape.conv_kernel,
                                .history = layer.history,
                                .history_stride = 3 * width,
                                .history_begin = i * width,
                                .table_width = group.table_width});
  }
  const float scale = 1.0F / std::sqrt(static_cast<float>(layer.shape.head_dim));
  for (const bool query : {true, false}) {
    list_.push_back(L2NormOp{.x = c_.scratch.qkv + (query ? 0 : width),
                             .rows = c_.shape.rows(),
                             .heads = layer.heads,
                             .dim = layer.shape.head_dim,
                             .row_stride = 3 * width,
                             .scale = query ? scale : 1.0F,
                             .eps = kL2NormEps});
  }
}

// scratch.decay, scratch.beta and scratch.gate, from the layer's input
void LayerPass::Gates(const KdaLayer& layer) {
  const KdaWeights& w = layer.weights;
  const PassScratch& s = c_.scratch;
  const std::int64_t dim = layer.shape.head_dim;
  Linear(s.normed, w.f_down, c_.model.hidden, dim, s.low_rank);
  Linear(s.low_rank, w.f_up, dim, layer.width(), s.decay);
  Linear(s.normed, w.beta, c_.model.hidden, layer.heads, s.beta);
  list_.push_back(KdaGateOp{.decay = s.decay,
                            .beta = s.beta,
                            .a_log = w.a_log,
                            .dt_bias = w.dt_bias,
                            .rows = c_.shape.rows(),
                            .heads = layer.heads,
                            .dim = dim,
                            .lower_bound = static_cast<float>(layer.shape.gate_lower_bound)});
  if (w.gate_down == nullptr) {
    Linear(s.normed, w.gate_up, c_.model.hidden, layer.width(), s.gate);
    return;
  }
  Linear(s.normed, w.gate_down, c_.model.hidden, dim, s.low_rank);
  Linear(s.low_rank, w.gate_up, dim, layer.width(), s.gate);
}

void LayerPass::Kda(const KdaLayer& layer, const GroupInputs& group) {
  const PassScratch& s = c_.scratch;
  const std::int64_t rows = c_.shape.rows();
  const std::int64_t width = layer.width();
  const std::int64_t dim = layer.shape.head_dim;
  const bool decodes_with_ring = layer.has_ring && c_.shape.pass != Pass::kTargetPrefill;
  if (decodes_with_ring) Replay(layer, group);
  Convolve(layer, group);
  Gates(layer);
  list_.push_back(KdaStepOp{.q = s.qkv,
                            .k = s.qkv + width,
                            .v = s.qkv + 2 * width,
                            .decay = s.decay,
                            .beta = s.beta,
                            .out = s.values,
                            .arena = c_.arena,
                            .state = layer.state,
                            .ring_decay = layer.ring_decay,
                            .ring_beta = layer.ring_beta,
                            .keeps_rows = decodes_with_ring,
                            .dtype = layer.dtype,
                            .block_table = group.block_table,
                            .bounds = group.bounds,
                            .reads = group.reads,
                            .writes = group.slots,
                            .fault = c_.out.fault,
                            .requests = c_.shape.requests,
                            .query_rows = c_.shape.query_rows,
                            .heads = layer.heads,
                            .dim = dim,
                            .row_stride = 3 * width,
                            .table_width = group.table_width});
  list_.push_back(RmsNormOp{.in = s.values,
                            .weight = layer.weights.out_norm,
                            .out = s.values,
                            .rows = rows * layer.heads,
                            .cols = dim,
                            .in_stride = dim,
                            .out_stride = dim,
                            .eps = c_.model.eps});
  list_.push_back(SigmoidGateOp{.x = s.values, .gate = s.gate, .count = rows * width});
  Linear(s.values, layer.weights.out, width, c_.model.hidden, s.branch);
}

}  // namespace kvasir
