// The sidecar of a plan, from the plan and the request it answers.
#ifndef KVASIR_PLANNER_CORE_BUILD_REPORT_H_
#define KVASIR_PLANNER_CORE_BUILD_REPORT_H_

#include <cstdint>
#include <vector>

#include "planner/core/plan_request.h"
#include "planner/core/report.h"
#include "planner/core/sized.h"

namespace kvasir {

// The context lengths of a report: the request's, or 8192, 32768, 131072 and context_tokens; each clipped to
// context_tokens, ascending, without repetitions.
[[nodiscard]] std::vector<std::int64_t> ReportContexts(const PlanRequest& request);

[[nodiscard]] Report BuildReport(const Plan& plan, const Sized& sized);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_BUILD_REPORT_H_
