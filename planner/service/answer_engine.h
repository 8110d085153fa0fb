// Questions that a vllm-* ruleset answers: what that engine would do, from a launch command, from its own
// specs, or from the models and options of our own requests.
#ifndef KVASIR_PLANNER_SERVICE_ANSWER_ENGINE_H_
#define KVASIR_PLANNER_SERVICE_ANSWER_ENGINE_H_

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir {

// "vllm-2026-08", "vllm-2026-11"; else nullopt.
[[nodiscard]] std::optional<vllm::EngineVersion> EngineRuleset(std::string_view name);

// Whether an engine is asked: `engine` is set, or the options name its ruleset.
[[nodiscard]] bool AsksEngine(const planner::v1::CreatePlanRequest& request);

// The answer to such a request. A failure of the engine is a successful answer. InvalidArgument (NotFound for
// a model) with reason and field path.
[[nodiscard]] absl::StatusOr<planner::v1::CreatePlanResponse> AnswerEngine(
    const planner::v1::CreatePlanRequest& request);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_ANSWER_ENGINE_H_
