// Single changes of a question that a person may make: another context parallelism, another cache type,
// another rollback, fewer drafted tokens, no draft. Each is a flag and what it does.
#ifndef KVASIR_PLANNER_QUESTIONS_CHANGES_H_
#define KVASIR_PLANNER_QUESTIONS_CHANGES_H_

#include <functional>
#include <string>
#include <vector>

#include "planner/questions/plan_question.h"

namespace kvasir {

struct Change {
  std::string flags;  // "--dcp 8"; "no --draft"
  std::function<void(PlanQuestion&)> apply;
};

// In a fixed order; none that leaves the question as it is. Whether a change is legal is the planner's
// question.
[[nodiscard]] std::vector<Change> ChangesOf(const PlanQuestion& question);

// The same without those of context parallelism, for questions that choose it themselves.
[[nodiscard]] std::vector<Change> ChangesBesideDcp(const PlanQuestion& question);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_QUESTIONS_CHANGES_H_
