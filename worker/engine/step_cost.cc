#include "worker/engine/step_cost.h"

#include <algorithm>
#include <cmath>

namespace kvasir {
namespace {

constexpr std::int64_t kMeasureEvery = 32;
constexpr double kKeep = 0.98;  // of the weight of earlier steps
constexpr StepCost kAllRows = {.fixed = 1, .row = 0};
constexpr StepCost kNoRows = {.fixed = 0, .row = 1};

std::int64_t Rounded(double value) {
  return std::llround(std::clamp(value, 0.0, static_cast<double>(kStepCostMax)));
}

}  // namespace

StepCost StepCostEstimate::Next(std::int64_t requests) {
  Line& line = lines_[requests];
  const std::int64_t turn = line.steps++ % kMeasureEvery;
  if (turn == 0) return kAllRows;
  if (turn == 1) return kNoRows;
  const double spread = line.weight * line.xx - line.x * line.x;
  if (!(spread > 0)) return kAllRows;
  const double slope = (line.weight * line.xy - line.x * line.y) / spread;
  const StepCost cost{.fixed = Rounded((line.y - slope * line.x) / line.weight), .row = Rounded(slope)};
  return cost.row > 0 ? cost : kAllRows;
}

void StepCostEstimate::Add(std::int64_t requests, std::int64_t drafted, std::int64_t nanoseconds) {
  Line& line = lines_[requests];
  const auto x = static_cast<double>(requests * (1 + drafted));
  const auto y = static_cast<double>(nanoseconds);
  for (double* sum : {&line.weight, &line.x, &line.y, &line.xx, &line.xy}) *sum *= kKeep;
  line.weight += 1;
  line.x += x;
  line.y += y;
  line.xx += x * x;
  line.xy += x * y;
}

}  // namespace kvasir
