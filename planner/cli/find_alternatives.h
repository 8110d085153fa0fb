// The same question under other choices, for comparison.
#ifndef KVASIR_PLANNER_CLI_FIND_ALTERNATIVES_H_
#define KVASIR_PLANNER_CLI_FIND_ALTERNATIVES_H_

#include <vector>

#include "planner/cli/plan_question.h"
#include "planner/cli/show_plan.h"
#include "planner/core/report.h"

namespace kvasir::cli {

// Each other way to take rejected tokens back, where there is a state to roll back, and the engine vLLM. At
// the lengths of `report.capacity`, which are those of the question's options.
[[nodiscard]] std::vector<Alternative> FindAlternatives(const PlanQuestion& question, const Report& report);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_FIND_ALTERNATIVES_H_
