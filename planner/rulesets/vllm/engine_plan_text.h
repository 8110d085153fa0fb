// The canonical text of an engine plan: versioned, ASCII, LF; equal plans have equal texts whatever the order
// of the case's specs, the build or the compiler. docs/formats/engine_specs.md has the grammar.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_ENGINE_PLAN_TEXT_H_
#define KVASIR_PLANNER_RULESETS_VLLM_ENGINE_PLAN_TEXT_H_

#include <string>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/engine_plan.h"

namespace kvasir::vllm {

// What the engine would do: layers by name, specs, groups, workers, block sizes, capacity; a failure by stage
// and kind. Messages, warnings and log lines are not part of it. `plan` comes from PlanEngine(engine_case,
// ...).
[[nodiscard]] std::string ToText(const EngineCase& engine_case, const EnginePlan& plan);

// 64 lower-case hex digits: the SHA-256 of the text.
[[nodiscard]] std::string EnginePlanId(const std::string& text);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_ENGINE_PLAN_TEXT_H_
