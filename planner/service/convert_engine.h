// A serving engine's plan -> the wire. Total.
#ifndef KVASIR_PLANNER_SERVICE_CONVERT_ENGINE_H_
#define KVASIR_PLANNER_SERVICE_CONVERT_ENGINE_H_

#include "kvasir/plan/v1/engine.pb.h"
#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/engine_plan.h"

namespace kvasir {

// With canonical text and plan_id; without log_lines, which depend on the release.
[[nodiscard]] plan::v1::EnginePrediction EnginePlanToProto(const vllm::EngineCase& engine_case,
                                                           const vllm::EnginePlan& plan);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_CONVERT_ENGINE_H_
