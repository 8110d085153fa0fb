// Python's integers do not overflow; ours do. Sizes are computed in 128 bits and must fit 62 before they are
// kept.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_EXACT_H_
#define KVASIR_PLANNER_RULESETS_VLLM_EXACT_H_

#include <cstdint>

#include "planner/core/wide.h"
#include "planner/rulesets/vllm/engine_failure.h"

namespace kvasir::vllm {

inline constexpr std::int64_t kExactMax = std::int64_t{1} << 62;

// Two kept values may be multiplied in Wide. kTooLarge where `value` is beyond 2^62 either way.
[[nodiscard]] inline EngineResult<std::int64_t> Exact(Wide value) {
  if (value > Wide{kExactMax} || value < -Wide{kExactMax}) {
    return PlanFailure(EngineErrorKind::kTooLarge,
                       "a size is beyond 2^62 bytes or tokens; use smaller blocks, heads or memory");
  }
  return static_cast<std::int64_t>(value);
}

// Python's cdiv and floor division for a >= 0; ZeroDivisionError where b is 0.
[[nodiscard]] inline EngineResult<std::int64_t> ExactCeilDiv(std::int64_t a, std::int64_t b) {
  if (b == 0) return PlanFailure(EngineErrorKind::kZeroDivisionError, "a page of 0 bytes divides a size");
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_EXACT_H_
