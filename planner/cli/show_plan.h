// What a person sees of a plan that fits.
#ifndef KVASIR_PLANNER_CLI_SHOW_PLAN_H_
#define KVASIR_PLANNER_CLI_SHOW_PLAN_H_

#include <string>
#include <vector>

#include "planner/cli/console.h"
#include "planner/core/outcome.h"

namespace kvasir::cli {

// The capacity under another choice, beside the plan's own.
struct Alternative {
  std::string label;  // "with snapshots"
  std::vector<CapacityRow> capacity;
  std::string remark = {};  // of another planner's: "18 padding layers (26.1 %), 768-token blocks"
};

// `kept`: the plan was stored, so that other commands find it by its id.
void ShowPlan(const Console& console, const Planned& planned, const std::vector<Alternative>& alternatives,
              bool kept);

// "causal, verify q=8": how the group's multi-token pass behaves.
[[nodiscard]] std::string BehaviourText(const Plan& plan, const PlanGroup& group);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_SHOW_PLAN_H_
