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

// A tensor [ring rows, heads, dim] of f32 in a sequence's ring.
struct RingTensor {
  std::byte* arena;
  const StateGeometry& place;
  const std::int64_t* table;  // the sequence's
  std::int64_t heads, dim;
};

// One head's part of a row.
[[nodiscard]] inline std::byte* RingPart(const RingTensor& ring, std::int64_t row, std::int64_t head) {
  return ring.arena + StateOffset(ring.place, ring.table, 0) +
         (row * ring.heads + head) * ring.dim * DTypeBytes(DType::kF32);
}

// out[c] = silu(sum_j weight[c, kernel - count + j] * taps[j, c]), oldest first: the one order of sums, for a
// pass's own rows and for those that are replayed.
void ConvolveRow(const float* taps, std::int64_t count, const float* weight, std::int64_t kernel,
                 std::int64_t channels, float* out);
// x *= scale / sqrt(sum(x^2) + eps)
void NormalizeHead(float* x, std::int64_t dim, float scale, float eps);

// recurrent.cc
void ShortConv(const ShortConvOp& op);
void L2Norm(const L2NormOp& op);
void KdaGate(const KdaGateOp& op);
// kda_replay.cc
void KdaReplay(const KdaReplayOp& op);
// kda_step.cc
void KdaStep(const KdaStepOp& op);
// reference_kda.cc: in double, one formula a line.
void ReferenceShortConv(const ShortConvOp& op);
void ReferenceKdaGate(const KdaGateOp& op);
void ReferenceKdaReplay(const KdaReplayOp& op);
void ReferenceKdaStep(const KdaStepOp& op);

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_RECURRENT_H_
