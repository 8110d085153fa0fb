// Dot products of a block: kOutputs of them at a time, kLanes threads each.
#ifndef KVASIR_WORKER_CUDA_DOT_CUH_
#define KVASIR_WORKER_CUDA_DOT_CUH_

#include "worker/cuda/kernel_language.cuh"

namespace kvasir::cuda {

inline constexpr int kLanes = 8;
inline constexpr int kOutputs = kBlock / kLanes;

[[nodiscard]] __device__ inline std::int64_t FirstOutput() { return std::int64_t{blockIdx.x} * kOutputs; }
[[nodiscard]] __device__ inline int OutputOfThread() { return static_cast<int>(threadIdx.x) / kLanes; }
[[nodiscard]] __device__ inline int LaneOfThread() { return static_cast<int>(threadIdx.x) % kLanes; }

// The dot product of this thread's output, in lane 0; 0 where `b` is null. All of the block must call it.
[[nodiscard]] __device__ inline float DotOfOutput(const float* a, const float* b, std::int64_t count) {
  __shared__ float part[kOutputs][kLanes];
  float sum = 0;
  if (b != nullptr) {
    for (std::int64_t k = LaneOfThread(); k < count; k += kLanes) sum += a[k] * b[k];
  }
  part[OutputOfThread()][LaneOfThread()] = sum;
  __syncthreads();
  if (LaneOfThread() == 0) {
    for (int lane = 1; lane < kLanes; ++lane) sum += part[OutputOfThread()][lane];
  }
  __syncthreads();  // before the next call writes
  return sum;
}

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_DOT_CUH_
