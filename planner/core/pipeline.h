// Runs the stages in their order, traces each, and verifies each by its own Verify. A stage that fails its
// Verify is a bug of ours and ends the process with the stage's message.
#ifndef KVASIR_PLANNER_CORE_PIPELINE_H_
#define KVASIR_PLANNER_CORE_PIPELINE_H_

#include "planner/core/outcome.h"
#include "planner/core/plan_request.h"
#include "planner/core/ruleset.h"
#include "planner/core/trace.h"

namespace kvasir {

[[nodiscard]] PlanOutcome RunPipeline(PlanRequest request, const Ruleset& ruleset, const TraceSink& trace);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_PIPELINE_H_
