// Matrix products. Every output element is one DotLanes (or one ascending sum of scaled rows), so its bits
// depend on its own row and weights alone.
#include <algorithm>

#include "worker/cpu/cpu_kernels.h"
#include "worker/cpu/lanes.h"

namespace kvasir::cpu {

void Linear(const LinearOp& op) {
  // Rows run inside a tile of weights, which then stays in the cache; the order of outputs is free, the order
  // inside each sum is not.
  constexpr std::int64_t kTileRows = 16;
  for (std::int64_t begin = 0; begin < op.out_dim; begin += kTileRows) {
    const std::int64_t end = std::min(op.out_dim, begin + kTileRows);
    for (std::int64_t r = 0; r < op.rows; ++r) {
      const float* in = op.in + r * op.in_stride;
      float* out = op.out + r * op.out_stride;
      for (std::int64_t n = begin; n < end; ++n) out[n] = DotLanes(in, op.weight + n * op.in_dim, op.in_dim);
    }
  }
}

void AbsorbQuery(const AbsorbQueryOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    for (std::int64_t h = 0; h < op.heads; ++h) {
      const float* q = op.q + (r * op.heads + h) * (op.nope + op.rope);
      float* out = op.out + (r * op.heads + h) * (op.latent + op.rope);
      std::fill(out, out + op.latent, 0.0F);
      for (std::int64_t i = 0; i < op.nope; ++i) {
        AddScaled(out, op.w_uk + (h * op.nope + i) * op.latent, q[i], op.latent);
      }
      std::copy(q + op.nope, q + op.nope + op.rope, out + op.latent);
    }
  }
}

void ProjectValue(const ProjectValueOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    for (std::int64_t h = 0; h < op.heads; ++h) {
      const float* in = op.in + (r * op.heads + h) * op.latent;
      float* out = op.out + (r * op.heads + h) * op.value;
      for (std::int64_t v = 0; v < op.value; ++v) {
        out[v] = DotLanes(in, op.w_uv + (h * op.value + v) * op.latent, op.latent);
      }
    }
  }
}

}  // namespace kvasir::cpu
