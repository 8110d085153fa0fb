// Questions that take many plans, as functions of messages. They end between two plans when `go_on` says so.
#ifndef KVASIR_PLANNER_SERVICE_ANSWER_QUESTIONS_H_
#define KVASIR_PLANNER_SERVICE_ANSWER_QUESTIONS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvasir/planner/v1/questions.pb.h"
#include "planner/questions/plan_question.h"

namespace kvasir {

[[nodiscard]] absl::StatusOr<planner::v1::ComparePlansResponse> AnswerComparePlans(
    const planner::v1::ComparePlansRequest& request);

[[nodiscard]] absl::StatusOr<planner::v1::SolvePlanResponse> AnswerSolvePlan(
    const planner::v1::SolvePlanRequest& request, const GoOn& go_on);

// Calls `send` with parts of the answer, of a few hundred points each, and at the end with the front.
[[nodiscard]] absl::Status AnswerSweepPlans(
    const planner::v1::SweepPlansRequest& request, const GoOn& go_on,
    const std::function<void(const planner::v1::SweepPlansResponse&)>& send);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_ANSWER_QUESTIONS_H_
