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
        float* head = row + h * op.head_stride;
        float& first = head[op.halves ? i : 2 * i];
        float& second = head[op.halves ? i + op.dim / 2 : 2 * i + 1];
        const float x = first;
        const float y = second;
        first = x * cosine - y * sine;
        second = x * sine + y * cosine;
      }
    }
  }
}

}  // namespace kvasir::cpu
