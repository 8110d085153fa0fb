// Parts of Solve: one question, without the changes that might improve its answer.
#ifndef KVASIR_PLANNER_QUESTIONS_SOLVE_ONE_H_
#define KVASIR_PLANNER_QUESTIONS_SOLVE_ONE_H_

#include <optional>
#include <variant>

#include "planner/questions/solve.h"

namespace kvasir {

using Tried = std::variant<Solution, NoSolution>;

// Plans the question as it stands; the value is left to the caller.
[[nodiscard]] Tried TryToPlan(const PlanQuestion& question);

// Rules first, whatever memory there is; then what the question's device leaves, if it names one. nullopt:
// the memory is set, or was given.
[[nodiscard]] std::optional<NoSolution> SetMemory(const SolveQuestion& question, PlanQuestion& asked);

// Any goal.
[[nodiscard]] Tried SolveOne(const SolveQuestion& question, const GoOn& go_on);

// kRanks, in solve_ranks.cc: the fewest ranks, and of their context parallelisms the one that admits most.
[[nodiscard]] Tried SolveRanks(const SolveQuestion& question, const GoOn& go_on);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_QUESTIONS_SOLVE_ONE_H_
