#include "worker/engine/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kvasir {
namespace {

double Mscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// The lane whose wave turns `turns` times within the original context (a real number).
double LaneOfTurns(const Rope& rope, double dim, double turns) {
  const double context = static_cast<double>(rope.original_context);
  return dim * std::log(context / (turns * 2.0 * std::numbers::pi)) / (2.0 * std::log(rope.theta));
}

}  // namespace

std::vector<float> RopeFrequencies(const Rope& rope, std::int64_t dim) {
  const double lanes = static_cast<double>(dim);
  const double last = lanes - 1.0;
  double ramp_begin = 0;
  double ramp_end = 0;
  if (rope.factor > 1.0) {
    ramp_begin = std::clamp(std::floor(LaneOfTurns(rope, lanes, rope.beta_fast)), 0.0, last);
    ramp_end = std::clamp(std::ceil(LaneOfTurns(rope, lanes, rope.beta_slow)), 0.0, last);
    // Two equal ends would divide by zero; the published code widens the ramp the same way.
    if (ramp_end == ramp_begin) ramp_end += 0.001;
  }
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < dim / 2; ++i) {
    const double plain = std::pow(rope.theta, -2.0 * static_cast<double>(i) / lanes);
    if (rope.factor <= 1.0) {
      frequencies.push_back(static_cast<float>(plain));
      continue;
    }
    const double slowed =
        std::clamp((static_cast<double>(i) - ramp_begin) / (ramp_end - ramp_begin), 0.0, 1.0);
    frequencies.push_back(static_cast<float>(plain * (1.0 - slowed) + plain / rope.factor * slowed));
  }
  return frequencies;
}

float RopeMagnitude(const Rope& rope) {
  return static_cast<float>(Mscale(rope.factor, rope.mscale) / Mscale(rope.factor, rope.mscale_all_dim));
}

float SoftmaxScale(const MlaShape& mla, const Rope& rope) {
  const double plain = 1.0 / std::sqrt(static_cast<double>(mla.nope_dim + mla.rope_dim));
  if (!mla.rotate || rope.mscale_all_dim == 0.0) return static_cast<float>(plain);
  const double mscale = Mscale(rope.factor, rope.mscale_all_dim);
  return static_cast<float>(plain * mscale * mscale);
}

}  // namespace kvasir
