// Combines the ranks' attention in floats; ReferenceCombine is the definition.
#ifndef KVASIR_WORKER_CPU_COMBINE_H_
#define KVASIR_WORKER_CPU_COMBINE_H_

#include "worker/cpu/reference_combine.h"
#include "worker/engine/launch.h"

namespace kvasir::cpu {

// As ReferenceCombine, within the conformance tolerances. With one rank the result has the partial's bits.
void Combine(const CombineOp& op, const GatheredPartials& parts);

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_COMBINE_H_
