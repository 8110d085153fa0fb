// What follows a gather of the ranks' parts: combination by LSE, and other orders of the same numbers.
#include "worker/cuda/element.cuh"
#include "worker/cuda/kernels.h"
#include "worker/cuda/shared_bytes.h"

namespace kvasir::cuda {
namespace {

// The ranks' weights, exp(lse_r - M) / sum, and the combined lse. exp(lse_r - M) / sum is exp(lse_r - LSE)
// without the rounding of LSE, which grows with M. An empty rank weighs 0.
__device__ float WeightsOf(const CombineOp& op, std::int64_t ranks, std::int64_t at, float* weights) {
  const std::int64_t stride = op.rows * op.heads_local * ranks;
  float largest = -INFINITY;
  for (std::int64_t r = 0; r < ranks; ++r) {
    const float lse = op.lse[r * stride + at];
    weights[r] = lse;
    if (std::isnan(lse) || lse == INFINITY) *op.fault = 1;
    if (lse > largest) largest = lse;
  }
  if (std::isinf(largest)) {
    for (std::int64_t r = 0; r < ranks; ++r) weights[r] = 0;
    return largest;
  }
  float sum = 0;
  for (std::int64_t r = 0; r < ranks; ++r) {
    weights[r] = expf(weights[r] - largest);
    sum += weights[r];
  }
  for (std::int64_t r = 0; r < ranks; ++r) weights[r] /= sum;
  return largest + logf(sum);
}

// grid: (rows * local heads); weights [ranks] in shared memory
__global__ void CombineKernel(CombineOp op, std::int64_t ranks, std::int64_t rank) {
  KVASIR_DYNAMIC_SHARED(float, weights);
  const std::int64_t row = blockIdx.x / op.heads_local;
  const std::int64_t head = rank * op.heads_local + blockIdx.x % op.heads_local;
  const std::int64_t heads = op.heads_local * ranks;
  const std::int64_t at = row * heads + head;
  if (threadIdx.x == 0) {
    const float lse = WeightsOf(op, ranks, at, weights);
    if (op.out_lse != nullptr) op.out_lse[blockIdx.x] = lse;
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < op.dim; i += kBlock) {
    float out = 0;
    bool first = true;
    for (std::int64_t r = 0; r < ranks; ++r) {
      if (!(weights[r] > 0)) continue;
      const float part = op.partial[(r * op.rows * heads + at) * op.dim + i];
      if (!std::isfinite(part)) *op.fault = 1;
      // The first part is stored, not added to zero, so that one rank alone keeps even the sign of a zero.
      out = first ? weights[r] * part : out + weights[r] * part;
      first = false;
    }
    op.out[blockIdx.x * op.dim + i] = out;
  }
}

__global__ void InterleaveKernel(const float* gathered, std::int64_t ranks, std::int64_t rows,
                                 std::int64_t cols, float* out) {
  for (std::int64_t i = GridThread(); i < ranks * rows * cols; i += GridThreads()) {
    const std::int64_t col = i % cols;
    const std::int64_t rank = i / cols % ranks;
    const std::int64_t row = i / cols / ranks;
    out[i] = gathered[(rank * rows + row) * cols + col];
  }
}

__global__ void SumRanksKernel(const float* gathered, std::int64_t ranks, std::int64_t count, float* x) {
  for (std::int64_t i = GridThread(); i < count; i += GridThreads()) {
    float sum = gathered[i];
    for (std::int64_t r = 1; r < ranks; ++r) sum += gathered[r * count + i];
    x[i] = sum;
  }
}

}  // namespace

void Combine(const CombineOp& op, std::int64_t ranks, std::int64_t rank, cudaStream_t stream) {
  const auto shared = static_cast<std::size_t>(FloatsBytes(ranks));
  KVASIR_LAUNCH(CombineKernel, BlocksFor(op.rows * op.heads_local, 1), kBlock, shared, stream, op, ranks,
                rank);
}
void InterleaveRanks(const float* gathered, std::int64_t ranks, std::int64_t rows, std::int64_t cols,
                     float* out, cudaStream_t stream) {
  KVASIR_LAUNCH(InterleaveKernel, BlocksFor(ranks * rows * cols, kBlock), kBlock, 0, stream, gathered, ranks,
                rows, cols, out);
}
void SumRanks(const float* gathered, std::int64_t ranks, std::int64_t count, float* x, cudaStream_t stream) {
  KVASIR_LAUNCH(SumRanksKernel, BlocksFor(count, kBlock), kBlock, 0, stream, gathered, ranks, count, x);
}

}  // namespace kvasir::cuda
