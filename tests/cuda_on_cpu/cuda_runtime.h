// The part of CUDA that worker/cuda uses, on the CPU: the words of the language, and the runtime's calls over
// host memory. Kernels run block by block, each of their threads as a fiber (block_runner.h), so that
// barriers, shared memory and exchanges between the threads of a warp do what they do on a device, and a
// sanitizer sees every access. What it cannot show: memory models and races between blocks, occupancy, TMA,
// wgmma, speed.
//
// Found by its name in place of the toolkit's header: the sources are the same.
#ifndef KVASIR_TESTS_CUDA_ON_CPU_CUDA_RUNTIME_H_
#define KVASIR_TESTS_CUDA_ON_CPU_CUDA_RUNTIME_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/cuda_on_cpu/block_runner.h"

// The toolkit's own names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming,google-runtime-int,bugprone-macro-parentheses)
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static thread_local  // a device is a thread of the host; its blocks run one by one
#define __launch_bounds__(...)

using dim3 = kvasir::cuda_on_cpu::Dim3;
using uint3 = kvasir::cuda_on_cpu::Dim3;
inline thread_local dim3 gridDim;
inline thread_local dim3 blockDim;
#define blockIdx (::kvasir::cuda_on_cpu::CurrentBlock())
#define threadIdx (::kvasir::cuda_on_cpu::CurrentThread())

inline void __syncthreads() { kvasir::cuda_on_cpu::BlockBarrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffU) { kvasir::cuda_on_cpu::WarpBarrier(mask); }
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask) {
  return kvasir::cuda_on_cpu::Exchange(
      mask, value, [=](unsigned lane) { return lane ^ static_cast<unsigned>(lane_mask); });
}
template <class T>
T __shfl_sync(unsigned mask, T value, int from) {
  return kvasir::cuda_on_cpu::Exchange(mask, value, [=](unsigned) { return static_cast<unsigned>(from); });
}
// Fibers of a block take turns and other blocks do not run meanwhile, so that a plain access is an atomic
// one.
template <class T>
T atomicMin(T* at, T value) {
  const T old = *at;
  if (value < old) *at = value;
  return old;
}
template <class T>
T atomicExch(T* at, T value) {
  const T old = *at;
  *at = value;
  return old;
}

enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchFailure = 719,
};
enum cudaMemcpyKind : int {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3
};
enum cudaStreamCaptureMode : int { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaFuncAttribute : int { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

namespace kvasir::cuda_on_cpu {
struct Stream;
struct Work;
}  // namespace kvasir::cuda_on_cpu
using cudaStream_t = kvasir::cuda_on_cpu::Stream*;
using cudaGraph_t = kvasir::cuda_on_cpu::Work*;
using cudaGraphExec_t = kvasir::cuda_on_cpu::Work*;

struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  std::size_t sharedMemPerBlockOptin;
  int major, minor, multiProcessorCount;
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMalloc(void** at, std::size_t bytes);
cudaError_t cudaFree(void* at);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGetLastError();
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaSetSharedMemory(std::size_t bytes);
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* /*kernel*/, cudaFuncAttribute /*what*/, int bytes) {
  return cudaSetSharedMemory(static_cast<std::size_t>(bytes));
}

namespace kvasir::cuda_on_cpu {

// What <<<...>>> does: runs the kernel, or adds it to the graph that the stream captures.
void Launch(Dim3 grid, Dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            std::function<void()> thread);

// The n-th call of the runtime from now on fails, once; 0: none. Of this thread.
void FailCall(std::int64_t n);
// Calls of the runtime on this thread so far.
[[nodiscard]] std::int64_t Calls();
// Why the last kernel of this thread failed: a deadlock, a barrier that not all reach, too much shared
// memory.
[[nodiscard]] const std::string& WhyFailed();
// Drivers are installed, unless a test says otherwise.
void SetDevices(int count);
// As on a device: what is allocated from now on can be made a segment that the host may not touch, but by
// calls of the runtime and by kernels. A sanitizer sees less of such memory, so it is not the usual kind. Of
// the process; not for backends on several threads.
void AllocateLockable(bool on);
void LockMemory(bool locked);

}  // namespace kvasir::cuda_on_cpu

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming,google-runtime-int,bugprone-macro-parentheses)

#endif  // KVASIR_TESTS_CUDA_ON_CPU_CUDA_RUNTIME_H_
