#include "worker/engine/target_pass.h"

namespace kvasir {
namespace {

// Copies the output of layer `index` to its place in out.taps, if it is tapped.
void TapLayer(const PassContext& c, std::int64_t index, LaunchList& list) {
  const std::int64_t taps = static_cast<std::int64_t>(c.model.taps.size());
  for (std::int64_t i = 0; i < taps; ++i) {
    if (c.model.taps[static_cast<std::size_t>(i)] != index) continue;
    list.push_back(CopyRowsOp{.in = c.scratch.x,
                              .out = c.out.taps + i * c.model.hidden,
                              .rows = c.shape.rows(),
                              .cols = c.model.hidden,
                              .in_stride = c.model.hidden,
                              .out_stride = taps * c.model.hidden});
  }
}

}  // namespace

LaunchList WriteTargetPass(const PassContext& context) {
  LaunchList list;
  LayerPass pass(context, list);
  pass.Embed();
  for (std::size_t i = 0; i < context.model.layers.size(); ++i) {
    pass.Mix(context.model.layers[i]);
    pass.Mlp(context.model.layers[i]);
    if (context.out.taps != nullptr) TapLayer(context, static_cast<std::int64_t>(i), list);
  }
  const bool tap_last = context.model.chain && context.out.taps != nullptr;
  if (context.out.logits == nullptr && !tap_last) return list;
  pass.FinalNorm();
  if (tap_last) {
    list.push_back(CopyRowsOp{.in = context.scratch.normed,
                              .out = context.out.taps,
                              .rows = context.shape.rows(),
                              .cols = context.model.hidden,
                              .in_stride = context.model.hidden,
                              .out_stride = context.model.hidden});
  }
  if (context.out.logits == nullptr) return list;
  pass.Logits(context.model.head, context.out.logits);
  list.push_back(ArgmaxOp{.logits = context.out.logits,
                          .ids = context.out.next_ids,
                          .fault = context.out.fault,
                          .rows = context.shape.rows(),
                          .vocab = context.model.vocab});
  return list;
}

}  // namespace kvasir
