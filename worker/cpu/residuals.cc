// Kimi-K3's attention over residuals: a row mixes what blocks of layers before left of it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/cpu/cpu_kernels.h"
#include "worker/cpu/lanes.h"

namespace kvasir::cpu {

void MixResiduals(const MixResidualsOp& op) {
  std::vector<float> weight(static_cast<std::size_t>(op.cols));
  for (std::int64_t i = 0; i < op.cols; ++i) weight[static_cast<std::size_t>(i)] = op.norm[i] * op.proj[i];
  const auto sources = static_cast<std::size_t>(op.count) + 1;
  std::vector<float> p(sources);
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const auto source = [&](std::size_t s) {
      const float* from =
          s + 1 == sources ? op.x : op.blocks + static_cast<std::int64_t>(s) * op.rows * op.cols;
      return from + r * op.cols;
    };
    for (std::size_t s = 0; s < sources; ++s) {
      const float mean = DotLanes(source(s), source(s), op.cols) / static_cast<float>(op.cols);
      p[s] = DotLanes(source(s), weight.data(), op.cols) / std::sqrt(mean + op.eps);
    }
    const float largest = *std::max_element(p.begin(), p.end());
    float sum = 0;
    for (float& score : p) sum += score = std::exp(score - largest);
    float* out = op.out + r * op.cols;
    std::fill(out, out + op.cols, 0.0F);
    for (std::size_t s = 0; s < sources; ++s) AddScaled(out, source(s), p[s] / sum, op.cols);
  }
}

}  // namespace kvasir::cpu
