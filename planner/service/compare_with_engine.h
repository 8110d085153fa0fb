// A plan beside the engine's layouts of the same question, as a function of messages.
#ifndef KVASIR_PLANNER_SERVICE_COMPARE_WITH_ENGINE_H_
#define KVASIR_PLANNER_SERVICE_COMPARE_WITH_ENGINE_H_

#include "absl/status/statusor.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/questions/plan_question.h"

namespace kvasir {

// A refusal of either side is a successful answer. InvalidArgument (NotFound for a model) with reason and
// field path.
[[nodiscard]] absl::StatusOr<planner::v1::CompareWithEngineResponse> AnswerCompareWithEngine(
    const planner::v1::CompareWithEngineRequest& request, const GoOn& go_on = {});

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_COMPARE_WITH_ENGINE_H_
