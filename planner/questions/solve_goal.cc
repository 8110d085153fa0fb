#include "planner/questions/solve.h"

namespace kvasir {
namespace {

struct GoalWord {
  SolveGoal goal;
  std::string_view word;
};
constexpr GoalWord kGoals[] = {{SolveGoal::kContext, "context"},
                               {SolveGoal::kRequests, "requests"},
                               {SolveGoal::kRanks, "ranks"},
                               {SolveGoal::kMemory, "memory"}};

}  // namespace

std::string_view SolveGoalName(SolveGoal goal) {
  for (const GoalWord& row : kGoals) {
    if (row.goal == goal) return row.word;
  }
  return "invalid";
}

std::optional<SolveGoal> ParseSolveGoal(std::string_view word) {
  for (const GoalWord& row : kGoals) {
    if (row.word == word) return row.goal;
  }
  return std::nullopt;
}

}  // namespace kvasir
