// What the recurrent kernels share: the history of a sequence's convolution inputs, and the convolution.
#ifndef KVASIR_WORKER_CUDA_RECURRENT_CUH_
#define KVASIR_WORKER_CUDA_RECURRENT_CUH_

#include "common/geometry/block_address.h"
#include "worker/cuda/element.cuh"

namespace kvasir::cuda {

// A ring of `tokens` rows, token p in row p mod tokens.
struct History {
  std::byte* at;
  DType dtype;
  std::int64_t tokens, stride;  // the second in elements

  [[nodiscard]] __device__ std::byte* RowOf(std::int64_t token) const {
    return at + token % tokens * stride * ElementBytes(dtype);
  }
  [[nodiscard]] __device__ float Load(std::int64_t token, std::int64_t channel) const {
    return LoadElement(RowOf(token), dtype, channel);
  }
  // Rounded to the history's type, as it will be read.
  __device__ void Store(std::int64_t token, std::int64_t channel, float value) const {
    StoreElement(RowOf(token), dtype, channel, value);
  }
};

// silu(sum_j weight[j] * in[position - kernel + 1 + j]), oldest first; tokens before the first are not there.
// `own` is in[position], rounded as the history is, which need not hold it: its row may be that of the
// oldest.
[[nodiscard]] __device__ inline float Convolved(const History& history, std::int64_t channel,
                                                const float* weight, std::int64_t kernel,
                                                std::int64_t position, float own) {
  const std::int64_t oldest = position - kernel + 1 > 0 ? position - kernel + 1 : 0;
  const float* w = weight + kernel - (position - oldest + 1);
  float sum = 0;
  for (std::int64_t p = oldest; p < position; ++p) sum += w[p - oldest] * history.Load(p, channel);
  sum += w[position - oldest] * own;
  return sum * Sigmoid(sum);
}

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_RECURRENT_CUH_
