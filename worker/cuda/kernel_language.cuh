// What the kernels' sources need beside CUDA itself: how a kernel is launched, dynamic shared memory, and
// sums over a block. The same sources are compiled for a device by nvcc and for the CPU's tests by g++
// (tests/cuda_on_cpu), which has no <<<>>>.
#ifndef KVASIR_WORKER_CUDA_KERNEL_LANGUAGE_CUH_
#define KVASIR_WORKER_CUDA_KERNEL_LANGUAGE_CUH_

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define KVASIR_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#define KVASIR_DYNAMIC_SHARED(type, name)                        \
  extern __shared__ __align__(16) unsigned char kvasir_shared[]; \
  type* const name = reinterpret_cast<type*>(kvasir_shared)
#define KVASIR_UNROLL _Pragma("unroll")
#else
#define KVASIR_UNROLL
// Arguments are copied now, as a device does.
#define KVASIR_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  ::kvasir::cuda_on_cpu::Launch(grid, block, shared_bytes, stream, ::kvasir::cuda::Bound(kernel, __VA_ARGS__))
#define KVASIR_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(::kvasir::cuda_on_cpu::DynamicShared())
#endif

namespace kvasir::cuda {

#ifndef __CUDACC__
template <class... Parameters, class... Arguments>
auto Bound(void (*kernel)(Parameters...), Arguments... arguments) {
  return [=] { kernel(arguments...); };
}
#endif

inline constexpr int kWarp = 32;
inline constexpr int kBlock = 128;  // threads of a block, unless a kernel says otherwise

[[nodiscard]] inline unsigned BlocksFor(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

// This thread's number in the grid, and how many there are; of one dimension.
[[nodiscard]] __device__ inline std::int64_t GridThread() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
[[nodiscard]] __device__ inline std::int64_t GridThreads() { return std::int64_t{gridDim.x} * blockDim.x; }

// The sum over the block's kBlock threads, in a fixed tree, for all of them. All must call it.
template <class T>
[[nodiscard]] __device__ T BlockSum(T value) {
  __shared__ T part[kBlock];
  part[threadIdx.x] = value;
  __syncthreads();
  for (int half = kBlock / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half)
      part[threadIdx.x] += part[threadIdx.x + static_cast<unsigned>(half)];
    __syncthreads();
  }
  const T sum = part[0];
  __syncthreads();  // before the next call writes
  return sum;
}

// A value and where it stands. Of equal values the lower index is the larger.
struct Indexed {
  float value;
  std::int64_t index;
};
[[nodiscard]] __device__ inline bool Larger(const Indexed& a, const Indexed& b) {
  return a.value != b.value ? a.value > b.value : a.index < b.index;
}

// The largest of the block's kBlock threads, for all of them. NaN is never larger.
[[nodiscard]] __device__ inline Indexed BlockLargest(Indexed mine) {
  __shared__ Indexed part[kBlock];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kBlock / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) {
      const Indexed& other = part[threadIdx.x + static_cast<unsigned>(half)];
      if (Larger(other, part[threadIdx.x])) part[threadIdx.x] = other;
    }
    __syncthreads();
  }
  const Indexed largest = part[0];
  __syncthreads();
  return largest;
}

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_KERNEL_LANGUAGE_CUH_
