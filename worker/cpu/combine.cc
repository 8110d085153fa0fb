#include "worker/cpu/combine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kvasir::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Turns the ranks' lse values into weights and returns the combined lse. An empty rank weighs 0.
float WeightsOf(std::vector<float>& lse, std::int32_t* fault) {
  float largest = -kInfinity;
  for (const float value : lse) {
    if (std::isnan(value) || value == kInfinity) *fault = 1;
    if (value > largest) largest = value;
  }
  if (std::isinf(largest)) {
    std::fill(lse.begin(), lse.end(), 0.0F);
    return largest;
  }
  float sum = 0;
  for (float& value : lse) {
    value = std::exp(value - largest);
    sum += value;
  }
  // exp(lse_r - M) / sum is exp(lse_r - LSE) without the rounding of LSE, which grows with M.
  for (float& value : lse) value /= sum;
  return largest + std::log(sum);
}

// out = or += weight * part. Sets *fault if an element of `part` is not finite.
void AddPart(const float* part, float weight, std::int64_t dim, bool first, float* out, std::int32_t* fault) {
  bool finite = true;
  for (std::int64_t i = 0; i < dim; ++i) finite = finite && std::isfinite(part[i]);
  if (!finite) *fault = 1;
  // The first part is stored, not added to zero, so that one rank alone keeps even the sign of a zero.
  for (std::int64_t i = 0; i < dim; ++i) out[i] = first ? weight * part[i] : out[i] + weight * part[i];
}

}  // namespace

void Combine(const CombineOp& op, const GatheredPartials& parts) {
  const std::int64_t heads = op.heads_local * parts.ranks;
  std::vector<float> weights(static_cast<std::size_t>(parts.ranks));
  for (std::int64_t row_head = 0; row_head < op.rows * op.heads_local; ++row_head) {
    const std::int64_t row = row_head / op.heads_local;
    const std::int64_t head = parts.rank * op.heads_local + row_head % op.heads_local;
    for (std::int64_t r = 0; r < parts.ranks; ++r) {
      weights[static_cast<std::size_t>(r)] = parts.lse[(r * op.rows + row) * heads + head];
    }
    const float combined = WeightsOf(weights, op.fault);
    float* out = op.out + row_head * op.dim;
    bool first = true;
    for (std::int64_t r = 0; r < parts.ranks; ++r) {
      const float weight = weights[static_cast<std::size_t>(r)];
      if (!(weight > 0)) continue;
      AddPart(parts.partial + ((r * op.rows + row) * heads + head) * op.dim, weight, op.dim, first, out,
              op.fault);
      first = false;
    }
    if (first) std::fill(out, out + op.dim, 0.0F);
    if (op.out_lse != nullptr) op.out_lse[row_head] = combined;
  }
}

}  // namespace kvasir::cpu
