// The machine form of an answer; docs/formats/plan_json.md is its contract.
#ifndef KVASIR_PLANNER_CLI_PLAN_JSON_H_
#define KVASIR_PLANNER_CLI_PLAN_JSON_H_

#include <optional>
#include <string>
#include <vector>

#include "planner/cli/show_plan.h"
#include "planner/core/explain.h"
#include "planner/core/outcome.h"
#include "planner/core/plan_request.h"
#include "planner/questions/explain_question.h"

namespace kvasir::cli {

// What the command line found out beside the answer itself.
struct Extras {
  std::vector<Alternative> alternatives;      // of a plan that fits
  std::vector<std::string> accepted_instead;  // of a refusal: flags that the rules accept
};

// One JSON object with a newline. Schema kvasir.plan/1.
[[nodiscard]] std::string OutcomeJson(const PlanRequest& request, const PlanOutcome& outcome,
                                      const Extras& extras);

// Schema kvasir.validate/1: the verdict is "valid" or "refused".
[[nodiscard]] std::string ValidationJson(const std::vector<Refusal>& refusals, const Extras& extras);

// Schema kvasir.explain/1. Without remedies the plan's question is not known.
[[nodiscard]] std::string ExplainJson(const std::string& plan_id, const std::vector<ExplainLine>& lines,
                                      const std::optional<std::vector<Remedy>>& remedies);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_PLAN_JSON_H_
