// The machine form of an answer; docs/formats/plan_json.md is its contract.
#ifndef KVASIR_PLANNER_CLI_PLAN_JSON_H_
#define KVASIR_PLANNER_CLI_PLAN_JSON_H_

#include <string>
#include <vector>

#include "planner/cli/show_plan.h"
#include "planner/core/explain.h"
#include "planner/core/outcome.h"
#include "planner/core/plan_request.h"

namespace kvasir::cli {

// One JSON object with a newline. Schema kvasir.plan/1.
[[nodiscard]] std::string OutcomeJson(const PlanRequest& request, const PlanOutcome& outcome,
                                      const std::vector<Alternative>& alternatives);

// Schema kvasir.validate/1: the verdict is "valid" or "refused".
[[nodiscard]] std::string ValidationJson(const std::vector<Refusal>& refusals);

// Schema kvasir.explain/1.
[[nodiscard]] std::string ExplainJson(const std::string& plan_id, const std::vector<ExplainLine>& lines);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_PLAN_JSON_H_
