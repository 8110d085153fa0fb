// Memory of a backend's own that an operation needs while it runs: known from the operation's sizes alone, so
// that one block of the largest need serves a whole list, captured or not.
#ifndef KVASIR_WORKER_CUDA_WORKSPACE_H_
#define KVASIR_WORKER_CUDA_WORKSPACE_H_

#include <cstdint>

#include "worker/engine/launch.h"

#ifdef __CUDACC__
#define KVASIR_HOST_DEVICE __host__ __device__
#else
#define KVASIR_HOST_DEVICE
#endif

namespace kvasir::cuda {

// Elements of one row and head that an attention kernel keeps in registers, and of a key in shared memory.
inline constexpr std::int64_t kDecodeValueDimMost = 512;
inline constexpr std::int64_t kDecodeKeyDimMost = 576;

// What splits leave for the merge: of each split, row and head its sum of values, largest score and sum of
// weights.
struct DecodeScratch {
  float* at = nullptr;
  std::int64_t splits = 0, row_heads = 0, value_dim = 0;

  [[nodiscard]] std::int64_t floats() const { return splits * row_heads * (value_dim + 2); }
  [[nodiscard]] KVASIR_HOST_DEVICE float* OutOf(std::int64_t split, std::int64_t row_head) const {
    return at + (split * row_heads + row_head) * value_dim;
  }
  [[nodiscard]] KVASIR_HOST_DEVICE float& LargestOf(std::int64_t split, std::int64_t row_head) const {
    return at[splits * row_heads * value_dim + split * row_heads + row_head];
  }
  [[nodiscard]] KVASIR_HOST_DEVICE float& SumOf(std::int64_t split, std::int64_t row_head) const {
    return at[splits * row_heads * (value_dim + 1) + split * row_heads + row_head];
  }
};
[[nodiscard]] DecodeScratch DecodeScratchOf(const MlaDecodeOp& op, float* at);
[[nodiscard]] DecodeScratch DecodeScratchOf(const GqaDecodeOp& op, float* at);

// What a Markov head keeps between the rows of a block, of each request.
struct MarkovScratch {
  float* at = nullptr;
  std::int64_t requests = 0, rank = 0;

  [[nodiscard]] std::int64_t floats() const { return requests * (5 * rank + 1); }
  [[nodiscard]] KVASIR_HOST_DEVICE float* StateOf(std::int64_t request) const { return at + request * rank; }
  [[nodiscard]] KVASIR_HOST_DEVICE float* MOf(std::int64_t request) const {
    return at + (requests + request) * rank;
  }
  [[nodiscard]] KVASIR_HOST_DEVICE float* MixedOf(std::int64_t request) const {
    return at + (2 * requests + 3 * request) * rank;
  }
  [[nodiscard]] KVASIR_HOST_DEVICE std::int32_t* Tokens() const {
    return reinterpret_cast<std::int32_t*>(at + 5 * requests * rank);
  }
};
[[nodiscard]] MarkovScratch MarkovScratchOf(const MarkovChainOp& op, float* at);

// Floats that the operation needs.
[[nodiscard]] std::int64_t ScratchFloats(const Launch& launch);

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_WORKSPACE_H_
