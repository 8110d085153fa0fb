// Questions that a vllm-* ruleset answers: what that engine would do, from a launch command, from its own
// specs, or from the models and options of our own requests.
#ifndef KVASIR_PLANNER_SERVICE_ANSWER_ENGINE_H_
#define KVASIR_PLANNER_SERVICE_ANSWER_ENGINE_H_

#include "absl/status/statusor.h"
#include "kvasir/planner/v1/planner_service.pb.h"

namespace kvasir {

// Whether an engine is asked: `engine` is set, or the options name its ruleset.
[[nodiscard]] bool AsksEngine(const planner::v1::CreatePlanRequest& request);

// The answer to such a request. A failure of the engine is a successful answer. InvalidArgument (NotFound for
// a model) with reason and field path.
[[nodiscard]] absl::StatusOr<planner::v1::CreatePlanResponse> AnswerEngine(
    const planner::v1::CreatePlanRequest& request);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_ANSWER_ENGINE_H_
