// One function per instruction that C++ has no word for. On the CPU they are operations of a warp of fibers.
#ifndef KVASIR_WORKER_CUDA_PTX_CUH_
#define KVASIR_WORKER_CUDA_PTX_CUH_

#include <cstddef>
#include <cstdint>

#include "common/geometry/bf16.h"
#include "worker/cuda/kernel_language.cuh"

namespace kvasir::cuda {

#ifdef __CUDACC__

// d += a b for a of [16, 16] and b of [16, 8], both bf16, a warp's registers as PTX lays them out: with g =
// lane / 4 and t = lane % 4, a = {(g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8)} and the element right
// of each; b = {(2t, g), (2t + 8, g)} and the element below each; d = {(g, 2t), (g, 2t + 1), (g + 8, 2t), (g
// + 8, 2t + 1)}.
__device__ inline void MultiplyAdd(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// MultiplyAdd's b from 16 rows of shared memory, of which lane i < 16 names row i: 8 elements, 16-byte
// aligned.
__device__ inline void LoadTransposed(std::uint32_t (&b)[2], const std::uint16_t* row) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(b[0]), "=r"(b[1])
               : "r"(at)
               : "memory");
}

// 16 bytes to shared memory, both 16-byte aligned, some time before the wait for their group ends.
__device__ inline void CopyAsync(void* to, const void* from) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most kLeft of this thread's groups are under way.
template <int kLeft>
__device__ inline void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

#else

struct MmaOperands {
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

// The products of each element in ascending order.
inline void MultiplyAddWarp(MmaOperands* const* lanes) {
  const auto element = [](std::uint32_t pair, int k) {
    return Bf16ToFloat(static_cast<std::uint16_t>(k % 2 == 0 ? pair : pair >> 16));
  };
  float b[16][8];
  for (int k = 0; k < 16; ++k) {
    for (int n = 0; n < 8; ++n) b[k][n] = element(lanes[n * 4 + k % 8 / 2]->b[k / 8], k);
  }
  for (int row = 0; row < 16; ++row) {
    float sums[8];
    for (int n = 0; n < 8; ++n) sums[n] = lanes[row % 8 * 4 + n / 2]->d[row / 8 * 2 + n % 2];
    for (int k = 0; k < 16; ++k) {
      const float a = element(lanes[row % 8 * 4 + k % 8 / 2]->a[row / 8 + k / 8 * 2], k);
      for (int n = 0; n < 8; ++n) sums[n] += a * b[k][n];
    }
    for (int n = 0; n < 8; ++n) lanes[row % 8 * 4 + n / 2]->d[row / 8 * 2 + n % 2] = sums[n];
  }
}

inline void MultiplyAdd(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  MmaOperands mine{d, a, b};
  cuda_on_cpu::AsAWarp(mine, MultiplyAddWarp);
}

struct LoadOperands {
  std::uint32_t* b;
  const std::uint16_t* row;
};

inline void LoadTransposed(std::uint32_t (&b)[2], const std::uint16_t* row) {
  LoadOperands mine{b, row};
  cuda_on_cpu::AsAWarp(mine, [](LoadOperands* const* lanes) {
    for (int lane = 0; lane < kWarp; ++lane) {
      for (int i = 0; i < 2; ++i) {
        const int first = 8 * i + 2 * (lane % 4);
        const std::uint32_t low = lanes[first]->row[lane / 4];
        const std::uint32_t high = lanes[first + 1]->row[lane / 4];
        lanes[lane]->b[i] = low | high << 16;
      }
    }
  });
}

inline void CopyAsync(void* to, const void* from) { cuda_on_cpu::CopyLater(to, from, 16); }
inline void CommitCopies() { cuda_on_cpu::CommitCopies(); }
template <int kLeft>
inline void WaitForCopies() {
  cuda_on_cpu::WaitForCopies(kLeft);
}

#endif

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_PTX_CUH_
