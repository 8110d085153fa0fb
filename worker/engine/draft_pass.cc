#include "worker/engine/draft_pass.h"

namespace kvasir {

LaunchList WriteDraftContextPass(const PassContext& context) {
  LaunchList list;
  LayerPass pass(context, list);
  const RoleModel& model = context.model;
  const std::int64_t taps_dim = static_cast<std::int64_t>(model.taps.size()) * model.tap_hidden;
  list.push_back(LinearOp{.in = context.out.taps,
                          .weight = model.context_proj,
                          .out = context.scratch.x,
                          .rows = context.shape.rows(),
                          .in_dim = taps_dim,
                          .out_dim = model.hidden,
                          .in_stride = taps_dim,
                          .out_stride = model.hidden});
  list.push_back(RmsNormOp{.in = context.scratch.x,
                           .weight = model.context_norm,
                           .out = context.scratch.x,
                           .rows = context.shape.rows(),
                           .cols = model.hidden,
                           .in_stride = model.hidden,
                           .out_stride = model.hidden,
                           .eps = model.eps});
  for (const RoleLayer& layer : model.layers) pass.WriteCacheRows(layer, context.scratch.x);
  return list;
}

LaunchList WriteDraftBlockPass(const PassContext& context) {
  LaunchList list;
  LayerPass pass(context, list);
  const RoleModel& model = context.model;
  const PassOutputs& out = context.out;
  pass.Embed();
  for (const RoleLayer& layer : model.layers) {
    pass.Mix(layer);
    pass.Mlp(layer);
  }
  const DraftHeads& heads = model.heads;
  float* base = heads.markov_rank > 0 ? context.scratch.base_logits : out.logits;
  pass.FinalNorm();
  pass.Logits(model.head, base);
  list.push_back(MarkovChainOp{.base = base,
                               .w1 = heads.markov_in,
                               .w2 = heads.markov_out,
                               .anchors = context.in.anchors,
                               .logits = out.logits,
                               .drafted = out.drafted,
                               .fault = out.fault,
                               .requests = context.shape.requests,
                               .query_rows = context.shape.query_rows,
                               .vocab = model.vocab,
                               .rank = heads.markov_rank,
                               .temperatures = context.in.temperatures,
                               .draws = context.in.draws,
                               .head = heads.markov_head,
                               .mix = heads.markov_mix,
                               .mix_bias = heads.markov_mix_bias,
                               .hidden = context.scratch.normed,  // as FinalNorm left it
                               .hidden_dim = model.hidden,
                               .confidence = heads.confidence,
                               .confidence_bias = heads.confidence_bias,
                               .confidence_markov = heads.confidence_markov,
                               .confidences = out.confidences});
  return list;
}

}  // namespace kvasir
