// The target's passes. Prefill, decode and verify are one list: they differ in shape and in the metadata that
// the engine writes, and so a prefilled row has the bits of a decoded one.
#ifndef KVASIR_WORKER_ENGINE_TARGET_PASS_H_
#define KVASIR_WORKER_ENGINE_TARGET_PASS_H_

#include "worker/engine/layer_pass.h"

namespace kvasir {

// Writes out.taps where it is not null, out.logits and out.next_ids where logits is not null.
[[nodiscard]] LaunchList WriteTargetPass(const PassContext& context);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_TARGET_PASS_H_
