// One page about one question, for people: it loads nothing, and every number in it was computed by the
// planner. docs/formats/cli.md says what it shows.
#ifndef KVASIR_PLANNER_CLI_PAGE_PLAN_PAGE_H_
#define KVASIR_PLANNER_CLI_PAGE_PLAN_PAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/cli/plan_json.h"
#include "planner/cli/show_plan.h"
#include "planner/core/outcome.h"
#include "planner/core/plan_request.h"

namespace kvasir::cli {

// What is shown beside the outcome.
struct PageFacts {
  std::string command;                // asks the question again
  Extras extras;                      // as in the machine form
  std::vector<Alternative> at_stops;  // extras.alternatives once more, at the page's lengths
};

// Lengths of the page's slider, ascending: powers of two and the halves between them up to what was planned,
// and the lengths of `asked` (of the capacity table).
[[nodiscard]] std::vector<std::int64_t> PageStops(const Plan& plan, const std::vector<CapacityRow>& asked);

// The page, whatever the verdict. Total.
[[nodiscard]] std::string PlanPage(const PlanRequest& request, const PlanOutcome& outcome,
                                   const PageFacts& facts);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_PAGE_PLAN_PAGE_H_
