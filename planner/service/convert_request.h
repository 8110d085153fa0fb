// A planning question of the wire -> the core's request.
#ifndef KVASIR_PLANNER_SERVICE_CONVERT_REQUEST_H_
#define KVASIR_PLANNER_SERVICE_CONVERT_REQUEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/core/plan_request.h"
#include "planner/questions/plan_question.h"

namespace kvasir {

struct PlanTask {
  PlanRequest request;
  std::string target_model_text;  // canonical; empty for explicit layers
  std::string draft_model_text;   // the same; empty without a draft
};

// InvalidArgument (NotFound for a catalogue name) with reason and field path. Everything that a rule of the
// planner judges is left to it.
[[nodiscard]] absl::StatusOr<PlanTask> TaskFromProto(const planner::v1::CreatePlanRequest& wire);
// The same for a judgement without sizes: kv_memory_bytes may be absent.
[[nodiscard]] absl::StatusOr<PlanTask> TaskFromProto(const planner::v1::ValidateSpecsRequest& wire);

// The same questions with whole models, for what plans more than once or reads models. Errors as above;
// explicit layers are UNKNOWN_VALUE.
[[nodiscard]] absl::StatusOr<PlanQuestion> QuestionFromProto(const planner::v1::CreatePlanRequest& wire);
// kv_memory_bytes may be absent where `needs_memory` is false; then the question has none.
[[nodiscard]] absl::StatusOr<PlanQuestion> QuestionFromProto(const planner::v1::SolvePlanRequest& wire,
                                                             bool needs_memory);
[[nodiscard]] absl::StatusOr<PlanQuestion> QuestionFromProto(const planner::v1::SweepPlansRequest& wire,
                                                             bool needs_memory);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_CONVERT_REQUEST_H_
