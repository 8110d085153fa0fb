// The search problem of one rollback: which blocks may be used at a given arena and context.
#ifndef KVASIR_PLANNER_RULESETS_NATIVE_SIZE_PROBLEM_H_
#define KVASIR_PLANNER_RULESETS_NATIVE_SIZE_PROBLEM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/core/capacity.h"
#include "planner/core/packed.h"
#include "planner/rulesets/native/size_search.h"

namespace kvasir::native {

// What is asked of a variant; does_not_fit.cc varies it to find the way out.
struct SizeQuestion {
  std::int64_t arena_bytes = 0;
  std::int64_t context_tokens = 0;
  std::int64_t min_requests = 1;
};

[[nodiscard]] SizeQuestion QuestionOf(const Packed& packed);

// All blocks. P's bound is max(largest minimal block, A / 1280) (ADR 15), so it grows with the arena, and
// with it everything that fits: more memory never turns a fit into a refusal.
[[nodiscard]] SearchProblem ProblemOf(const Packed& packed, const PackedVariant& variant,
                                      const SizeQuestion& question);

// Keeps at most 4 parts of a state, or the fewest that the bound on P allows.
void PreferFewParts(SearchProblem& problem);

// The best sizes with few parts; with any number of parts where those do not fit; nullopt if nothing fits.
[[nodiscard]] std::optional<SizeSolution> Solve(const SearchProblem& problem);

// A variant with its best sizes; nothing but zeros where no sizes fit.
struct SizedVariant {
  std::optional<SizeSolution> solution;
  std::vector<PoolLoad> loads;
  std::int64_t parents = 0;
};
[[nodiscard]] SizedVariant SizeVariant(const Packed& packed, const PackedVariant& variant,
                                       const SearchProblem& problem);

// Does anything fit?
[[nodiscard]] bool Fits(const Packed& packed, const PackedVariant& variant, const SizeQuestion& question);

}  // namespace kvasir::native

#endif  // KVASIR_PLANNER_RULESETS_NATIVE_SIZE_PROBLEM_H_
