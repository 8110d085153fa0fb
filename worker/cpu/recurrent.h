// What the recurrent kernels share: places in the state, and the element type that kept values are rounded
// to.
#ifndef KVASIR_WORKER_CPU_RECURRENT_H_
#define KVASIR_WORKER_CPU_RECURRENT_H_

#include <cstddef>
#include <cstdint>

#include "common/geometry/bf16.h"
#include "common/geometry/block_address.h"
#include "common/geometry/dtype.h"
#include "worker/engine/launch.h"

namespace kvasir::cpu {

[[nodiscard]] inline float Rounded(float value, DType dtype) {
  return dtype == DType::kBf16 ? Bf16ToFloat(FloatToBf16(value)) : value;
}

// Row `row` of the ring's tensor of `elements` elements a row.
[[nodiscard]] inline std::byte* RingRow(std::byte* arena, const StateGeometry& place,
                                        const std::int64_t* table, std::int64_t row, std::int64_t elements,
                                        DType dtype) {
  return arena + StateOffset(place, table, 0) + row * elements * DTypeBytes(dtype);
}

// recurrent.cc
void ShortConv(const ShortConvOp& op);
void L2Norm(const L2NormOp& op);
void KdaGate(const KdaGateOp& op);
// kda_step.cc
void KdaStep(const KdaStepOp& op);
// reference_kda.cc: in double, one formula a line.
void ReferenceShortConv(const ShortConvOp& op);
void ReferenceKdaGate(const KdaGateOp& op);
void ReferenceKdaStep(const KdaStepOp& op);

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_RECURRENT_H_
