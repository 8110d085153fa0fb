#include <cmath>

#include "worker/cpu/cpu_kernels.h"
#include "worker/cpu/lanes.h"

namespace kvasir::cpu {

void RmsNorm(const RmsNormOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const float* in = op.in + r * op.in_stride;
    float* out = op.out + r * op.out_stride;
    const float mean = DotLanes(in, in, op.cols) / static_cast<float>(op.cols);
    const float inverse = 1.0F / std::sqrt(mean + op.eps);
    for (std::int64_t i = 0; i < op.cols; ++i) out[i] = in[i] * inverse * op.weight[i];
  }
}

void Rope(const RopeOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    float* row = op.x + r * op.row_stride;
    for (std::int64_t i = 0; i < op.dim / 2; ++i) {
      // In double: at position 10^6 a float angle would be off by a few hundredths of a radian.
      const double angle = static_cast<double>(op.positions[r]) * static_cast<double>(op.inv_freq[i]);
      const float cosine = static_cast<float>(std::cos(angle)) * op.magnitude;
      const float sine = static_cast<float>(std::sin(angle)) * op.magnitude;
      for (std::int64_t h = 0; h < op.heads; ++h) {
        float* pair = row + h * op.head_stride + 2 * i;
        const float x = pair[0];
        const float y = pair[1];
        pair[0] = x * cosine - y * sine;
        pair[1] = x * sine + y * cosine;
      }
    }
  }
}

}  // namespace kvasir::cpu
