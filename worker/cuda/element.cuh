// One element of a cache or a state, to and from float; and the gated activation.
#ifndef KVASIR_WORKER_CUDA_ELEMENT_CUH_
#define KVASIR_WORKER_CUDA_ELEMENT_CUH_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/geometry/bf16.h"
#include "common/geometry/dtype.h"
#include "worker/cuda/kernel_language.cuh"
#include "worker/engine/launch_experts.h"

namespace kvasir::cuda {

// `dtype` is kBf16 or kF32, as everywhere in launch.h.
[[nodiscard]] __device__ inline std::int64_t ElementBytes(DType dtype) {
  return dtype == DType::kF32 ? 4 : 2;
}

[[nodiscard]] __device__ inline float LoadElement(const std::byte* row, DType dtype, std::int64_t i) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(row)[i];
  return Bf16ToFloat(reinterpret_cast<const std::uint16_t*>(row)[i]);
}

__device__ inline void StoreElement(std::byte* row, DType dtype, std::int64_t i, float value) {
  if (dtype == DType::kF32) {
    reinterpret_cast<float*>(row)[i] = value;
  } else {
    reinterpret_cast<std::uint16_t*>(row)[i] = FloatToBf16(value);
  }
}

[[nodiscard]] __device__ inline float Rounded(float value, DType dtype) {
  return dtype == DType::kBf16 ? Bf16ToFloat(FloatToBf16(value)) : value;
}

[[nodiscard]] __device__ inline float Sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

[[nodiscard]] __device__ inline float Gated(const GatedActivation& act, float gate, float up) {
  if (act.situ_beta == 0.0F) return gate * Sigmoid(gate) * up;
  if (act.situ_linear_beta > 0.0F) up = act.situ_linear_beta * tanhf(up / act.situ_linear_beta);
  return act.situ_beta * tanhf(gate / act.situ_beta) * Sigmoid(gate) * up;
}

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_ELEMENT_CUH_
