// The planner's front door: a pure function from a request to an outcome.
#ifndef KVASIR_PLANNER_RULESETS_MAKE_PLAN_H_
#define KVASIR_PLANNER_RULESETS_MAKE_PLAN_H_

#include <string>
#include <vector>

#include "planner/core/outcome.h"
#include "planner/core/plan_request.h"
#include "planner/core/trace.h"

namespace kvasir {

// The names that PlanRequest::ruleset may hold.
[[nodiscard]] std::vector<std::string> RulesetNames();

// Total: every request gets an outcome. Runs the pipeline with the request's ruleset; every plan was verified
// (common/plan/verify.h) before it is returned.
[[nodiscard]] PlanOutcome MakePlan(const PlanRequest& request, const TraceSink& trace = {});

}  // namespace kvasir

#endif  // KVASIR_PLANNER_RULESETS_MAKE_PLAN_H_
