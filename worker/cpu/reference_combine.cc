#include "worker/cpu/reference_combine.h"

#include <cmath>
#include <limits>
#include <vector>

namespace kvasir::cpu {
namespace {

// ln sum exp over the ranks; -inf where all are empty; sets *fault for NaN or +inf.
double CombinedLse(const std::vector<double>& lse, std::int32_t* fault) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double value : lse) {
    if (std::isnan(value) || value == std::numeric_limits<double>::infinity()) *fault = 1;
    if (value > largest) largest = value;
  }
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (const double value : lse) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

}  // namespace

void ReferenceCombine(const CombineOp& op, const GatheredPartials& parts) {
  const std::int64_t heads = op.heads_local * parts.ranks;
  std::vector<double> lse(static_cast<std::size_t>(parts.ranks));
  for (std::int64_t row_head = 0; row_head < op.rows * op.heads_local; ++row_head) {
    const std::int64_t row = row_head / op.heads_local;
    const std::int64_t head = parts.rank * op.heads_local + row_head % op.heads_local;
    for (std::int64_t r = 0; r < parts.ranks; ++r) {
      lse[static_cast<std::size_t>(r)] = static_cast<double>(parts.lse[(r * op.rows + row) * heads + head]);
    }
    const double combined = CombinedLse(lse, op.fault);
    for (std::int64_t i = 0; i < op.dim; ++i) {
      double sum = 0;
      for (std::int64_t r = 0; r < parts.ranks; ++r) {
        const double weight = std::exp(lse[static_cast<std::size_t>(r)] - combined);
        if (lse[static_cast<std::size_t>(r)] == -std::numeric_limits<double>::infinity()) continue;
        const float part = parts.partial[((r * op.rows + row) * heads + head) * op.dim + i];
        if (weight > 0 && !std::isfinite(part)) *op.fault = 1;
        if (weight > 0) sum += weight * static_cast<double>(part);
      }
      op.out[row_head * op.dim + i] = static_cast<float>(sum);
    }
    if (op.out_lse != nullptr) op.out_lse[row_head] = static_cast<float>(combined);
  }
}

}  // namespace kvasir::cpu
