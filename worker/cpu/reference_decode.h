// The definition of paged MLA decode (MlaDecodeOp in launch.h): one key at a time, in double, nothing shared
// between rows. Every backend is tested against it (tests/conformance). Formulas:
// docs/kernels/cpu_mla_decode.md.
#ifndef KVASIR_WORKER_CPU_REFERENCE_DECODE_H_
#define KVASIR_WORKER_CPU_REFERENCE_DECODE_H_

#include "worker/engine/launch.h"

namespace kvasir::cpu {

// Row r of request b sees the keys 0 .. bounds[r]-1 of the request. Reads nothing at or beyond a row's bound.
// bounds[r] <= 0: out = 0 and lse = -inf. A NaN among the visible keys gives a NaN lse.
void ReferenceDecode(const MlaDecodeOp& op);

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_REFERENCE_DECODE_H_
