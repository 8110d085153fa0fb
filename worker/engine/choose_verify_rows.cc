#include "worker/engine/choose_verify_rows.h"

#include <algorithm>
#include <cstddef>

namespace kvasir {
namespace {

double Clamped(float confidence) {
  if (!(confidence > 0)) return 0;  // NaN too
  return std::min(static_cast<double>(confidence), 1.0);
}

}  // namespace

std::int64_t ChooseVerifyRows(std::span<const std::vector<float>> confidences, const StepCost& cost) {
  const auto requests = static_cast<double>(confidences.size());
  std::size_t most = 0;
  for (const std::vector<float>& its : confidences) most = std::max(most, its.size());
  const auto time = [&](std::size_t columns) {
    return static_cast<double>(cost.fixed) +
           static_cast<double>(cost.row) * requests * static_cast<double>(1 + columns);
  };
  std::vector<double> worths(confidences.size(), 1);
  double tokens = requests;
  std::size_t chosen = 0;
  while (chosen < most) {
    double more = tokens;
    for (std::size_t r = 0; r < confidences.size(); ++r) {
      worths[r] *= chosen < confidences[r].size() ? Clamped(confidences[r][chosen]) : 0;
      more += worths[r];
    }
    // more / time(chosen + 1) > tokens / time(chosen)
    if (!(more * time(chosen) > tokens * time(chosen + 1))) break;
    tokens = more;
    ++chosen;
  }
  return static_cast<std::int64_t>(chosen);
}

}  // namespace kvasir
