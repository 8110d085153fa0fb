// The DSpark draft's two passes (sources of the method: docs/kernels/cpu_mla_decode.md).
#ifndef KVASIR_WORKER_ENGINE_DRAFT_PASS_H_
#define KVASIR_WORKER_ENGINE_DRAFT_PASS_H_

#include "worker/engine/layer_pass.h"

namespace kvasir {

// H = norm(W_c * taps); every draft layer projects H, without a norm of its own, to the cache rows of the
// context. Reads out.taps [rows, taps * target hidden]; writes caches only.
[[nodiscard]] LaunchList WriteDraftContextPass(const PassContext& context);

// [anchor, mask, ...] of each request through the draft, then the Markov chain from in.anchors. Row k
// predicts the token after position T' + k. Writes out.logits (with the Markov bias) and out.drafted.
[[nodiscard]] LaunchList WriteDraftBlockPass(const PassContext& context);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_DRAFT_PASS_H_
