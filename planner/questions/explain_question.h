// What a question adds to the explanation of its plan: what stands around the arena, and which single change
// would admit more. Each remedy was planned; applied, it gives what it says.
#ifndef KVASIR_PLANNER_QUESTIONS_EXPLAIN_QUESTION_H_
#define KVASIR_PLANNER_QUESTIONS_EXPLAIN_QUESTION_H_

#include <string>
#include <vector>

#include "planner/core/explain.h"
#include "planner/core/report.h"
#include "planner/questions/plan_question.h"

namespace kvasir {

struct Remedy {
  std::string flags;                  // "--dcp 8"
  std::string plan_id;                // of the question with them
  std::vector<CapacityRow> capacity;  // of that plan at ExplainedContexts of the explained one
  friend bool operator==(const Remedy&, const Remedy&) = default;
};

// Changes with which some explained length admits more, most at the plan's own context first, then at the
// longer lengths. `plan` is the answer to `question`.
[[nodiscard]] std::vector<Remedy> RankRemedies(const PlanQuestion& question, const Plan& plan,
                                               const GoOn& go_on = {});

// A sentence for each, with what the plan admits beside what it would.
[[nodiscard]] std::vector<ExplainLine> ExplainRemedies(const Plan& plan, const std::vector<Remedy>& remedies);

// The weights of both models on each rank: estimated, and beside the arena, not in it.
[[nodiscard]] std::vector<ExplainLine> ExplainWeights(const PlanQuestion& question);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_QUESTIONS_EXPLAIN_QUESTION_H_
