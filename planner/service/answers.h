// The planner's questions as functions of messages: convert, ask the core, convert. No gRPC, no state. Those
// that take many plans end between two of them when `go_on` says so.
#ifndef KVASIR_PLANNER_SERVICE_ANSWERS_H_
#define KVASIR_PLANNER_SERVICE_ANSWERS_H_

#include "absl/status/statusor.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/questions/plan_question.h"

namespace kvasir {

[[nodiscard]] absl::StatusOr<planner::v1::CreatePlanResponse> AnswerCreatePlan(
    const planner::v1::CreatePlanRequest& request);
[[nodiscard]] absl::StatusOr<planner::v1::ValidateSpecsResponse> AnswerValidateSpecs(
    const planner::v1::ValidateSpecsRequest& request);
[[nodiscard]] absl::StatusOr<planner::v1::ExplainPlanResponse> AnswerExplainPlan(
    const planner::v1::ExplainPlanRequest& request, const GoOn& go_on = {});

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_ANSWERS_H_
