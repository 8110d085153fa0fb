// What tests/cuda_on_cpu shows of a faulty kernel: a barrier that is missing, one that not all threads reach,
// a shuffle with a lane that is not there, a write beyond shared memory's size.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/conformance/decode_rig.h"
#include "tests/testing/matchers.h"
#include "worker/cuda/cuda_backend.h"
#include "worker/cuda/kernel_language.cuh"

namespace kvasir::testing {
namespace {

using cuda_on_cpu::ThreadOrder;

constexpr int kThreads = 64;

// Each thread writes its number, and reads its neighbour's.
void NeighbourKernel(int* out, bool waits) {
  __shared__ int numbers[kThreads];
  const auto i = static_cast<int>(threadIdx.x);
  numbers[i] = -1;
  __syncthreads();
  numbers[i] = i;
  if (waits) __syncthreads();
  out[i] = numbers[(i + 1) % kThreads];
}

// Threads that read another's number than the neighbour's.
int Wrong(bool waits, ThreadOrder order) {
  std::vector<int> out(kThreads, -1);
  cuda_on_cpu::SetThreadOrder(order);
  KVASIR_LAUNCH(NeighbourKernel, 1U, kThreads, 0, nullptr, out.data(), waits);
  cuda_on_cpu::SetThreadOrder(ThreadOrder::kAscending);
  int wrong = 0;
  for (int i = 0; i < kThreads; ++i) wrong += out[static_cast<std::size_t>(i)] == (i + 1) % kThreads ? 0 : 1;
  return wrong;
}

TEST(CudaOnCpuTest, WithoutABarrierWritesAreNotSeen) {
  for (const ThreadOrder order : {ThreadOrder::kAscending, ThreadOrder::kDescending}) {
    EXPECT_GT(Wrong(false, order), 0);
    EXPECT_EQ(Wrong(true, order), 0);
  }
}

void DivergingKernel(int* /*out*/) {
  if (threadIdx.x % 2 == 0) __syncwarp();
}
void LeavingKernel(int* out) {
  if (threadIdx.x == 3) return;
  __syncthreads();
  out[0] = 1;
}
void ShuffleKernel(int* out) {
  const int sum = __shfl_xor_sync(0xffffffffU, static_cast<int>(threadIdx.x), 1);
  out[threadIdx.x] = sum;
}
void OutsideKernel(int* out) { out[threadIdx.x] = __shfl_sync(0x1U << threadIdx.x, 1, 31); }

TEST(CudaOnCpuTest, ABarrierThatNotAllReachIsNamed) {
  std::vector<int> out(kThreads);
  KVASIR_LAUNCH(DivergingKernel, 1U, kThreads, 0, nullptr, out.data());
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cuda_on_cpu::WhyFailed(),
            "block (0, 0, 0): thread 0 waits at a warp's barrier that others do not reach");
  // Threads that have ended are not waited for, as on a device.
  KVASIR_LAUNCH(LeavingKernel, 1U, kThreads, 0, nullptr, out.data());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(out[0], 1);
}

TEST(CudaOnCpuTest, LanesExchangeValues) {
  std::vector<int> out(kThreads);
  KVASIR_LAUNCH(ShuffleKernel, 1U, kThreads, 0, nullptr, out.data());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i ^ 1);
  KVASIR_LAUNCH(OutsideKernel, 1U, 32, 0, nullptr, out.data());
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cuda_on_cpu::WhyFailed(), "a shuffle reads a lane that is not in its mask");
}

TEST(CudaOnCpuTest, SharedMemoryMustBeAskedFor) {
  std::vector<int> out(kThreads);
  KVASIR_LAUNCH(ShuffleKernel, 1U, kThreads, std::size_t{300} << 10, nullptr, out.data());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// 94 keys, the last rows' own causal; one of those is no number, and two rows see it.
DecodeValues WithoutBarrier(std::int64_t skipped, ThreadOrder order, DType dtype) {
  DecodeCase c{.batch = 1, .length = 94, .query_rows = 4, .block_tokens = 64, .dtype = dtype};
  c.latent = 32;
  c.rope = 16;
  c.split_tokens = 96;
  const BackendUnderTest cuda{
      "cuda", [](Communicator* context) { return MakeCudaBackend({.context = context}).value(); }};
  cuda_on_cpu::SetThreadOrder(order);
  cuda_on_cpu::SkipBarrier(skipped);
  const auto got = RunDecode(cuda, MakeData(c, 3), {.poison = 92});
  cuda_on_cpu::SkipBarrier(0);
  cuda_on_cpu::SetThreadOrder(ThreadOrder::kAscending);
  return got.value_or(DecodeValues{});
}

// Without any one of a kernel's barriers, in one of the two orders, the result is another; with all of them
// it is the same in both. bf16 goes through the kernel of tensor cores, f32 through that of threads.
TEST(PlantedBarriersTest, EveryBarrierOfTheDecodeKernelsIsNeeded) {
  for (const DType dtype : {DType::kBf16, DType::kF32}) {
    SCOPED_TRACE(DTypeName(dtype));
    const DecodeValues want = WithoutBarrier(0, ThreadOrder::kAscending, dtype);
    EXPECT_TRUE(want.fault);
    const auto differs = [&](std::int64_t skipped) {
      bool any = false;
      for (const ThreadOrder order : {ThreadOrder::kAscending, ThreadOrder::kDescending}) {
        const DecodeValues got = WithoutBarrier(skipped, order, dtype);
        any = any || !SameBits(got.out, want.out) || !SameBits(got.lse, want.lse);
      }
      return any;
    };
    EXPECT_FALSE(differs(0));
    // Of threads each tile of 16 keys has 4; after the last tile's last nothing is read.
    std::vector<std::int64_t> needed(23);
    std::iota(needed.begin(), needed.end(), 1);
    // Of mma a tile of 32 has 4, and the last, which is cleaned, 3 more. The fourth keeps the copy of the
    // tile after the next back (4; there is none at 8). Of the cleaned tile the first of cleaning does the
    // work of the one before it (9), and two matter where half a row is no number (11) and to what a row that
    // faults leaves (12).
    if (dtype == DType::kBf16) needed = {1, 2, 3, 4, 5, 6, 7, 10, 13, 14};
    for (const std::int64_t skipped : needed) EXPECT_TRUE(differs(skipped)) << "barrier " << skipped;
  }
}

}  // namespace
}  // namespace kvasir::testing
