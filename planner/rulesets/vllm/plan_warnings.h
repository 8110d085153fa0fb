// Where this engine would do something else without assertions or by a set's order, and the defects that a
// plan meets.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_PLAN_WARNINGS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_PLAN_WARNINGS_H_

#include <string>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/engine_plan.h"
#include "planner/rulesets/vllm/grouping_notes.h"

namespace kvasir::vllm {

// `plan` is complete but for its specs, which are `table`'s, and its warnings; it is what became of `asked`.
[[nodiscard]] std::vector<EngineWarning> WarningsOf(const SpecTable& table, const EngineCase& asked,
                                                    const EnginePlan& plan, const GroupingNotes& notes);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_PLAN_WARNINGS_H_
