// Ranges of what was asked, for paths on which the core does not judge it: the engines' rulesets, and
// requests of the wire, where 0 says "not given".
#ifndef KVASIR_PLANNER_REQUEST_CHECK_OPTIONS_H_
#define KVASIR_PLANNER_REQUEST_CHECK_OPTIONS_H_

#include "absl/status/status.h"
#include "planner/request/plan_options.h"

namespace kvasir {

// InvalidArgument (VALUE_OUT_OF_RANGE, UNKNOWN_VALUE) naming the first option that is wrong, its value and
// what it may be.
[[nodiscard]] absl::Status CheckPlanOptions(const PlanOptions& options);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_CHECK_OPTIONS_H_
