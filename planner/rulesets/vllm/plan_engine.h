// The seam of the vllm rulesets: what the engine would do with a case, or how it would fail.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_PLAN_ENGINE_H_
#define KVASIR_PLANNER_RULESETS_VLLM_PLAN_ENGINE_H_

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/engine_plan.h"

namespace kvasir::vllm {

// Total and pure: the same for every build type, hash seed and compiler. Requires indices of `engine_case` in
// range, distinct layer names, positive sizes and at least one worker (planner/request/engine_case_json.h
// checks them).
[[nodiscard]] EnginePlan PlanEngine(const EngineCase& engine_case, EngineVersion version);

// What the engine was plainly meant to do: the same without the defects that end 2026-11's planning or place
// layers of other stages. A sliding latent layer is promoted like any other; a state bucket of unequal
// numbers of layers per page size stays whole; a stage has tensors of its own layers only. Equal to
// PlanEngine where none of that is met.
[[nodiscard]] EnginePlan PlanEngineAsMeant(const EngineCase& engine_case, EngineVersion version);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_PLAN_ENGINE_H_
