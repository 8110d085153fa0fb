// Paged decode in floats (MlaDecodeOp and GqaDecodeOp in launch.h). How it is organised, and why its bits are
// what they are: docs/kernels/cpu_mla_decode.md.
#ifndef KVASIR_WORKER_CPU_PAGED_DECODE_H_
#define KVASIR_WORKER_CPU_PAGED_DECODE_H_

#include "worker/engine/launch.h"

namespace kvasir::cpu {

// As ReferenceDecode, within the conformance tolerances. Splits of `split_tokens` keys are attended one after
// the other and reduced in ascending order.
void MlaDecode(const MlaDecodeOp& op);
void GqaDecode(const GqaDecodeOp& op);

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_PAGED_DECODE_H_
