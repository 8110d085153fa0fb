// A planning question of the wire -> the core's request.
#ifndef KVASIR_PLANNER_SERVICE_CONVERT_REQUEST_H_
#define KVASIR_PLANNER_SERVICE_CONVERT_REQUEST_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/core/plan_request.h"
#include "planner/request/plan_options.h"

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

struct ModelQuestion {
  ModelDescription target;
  std::optional<ModelDescription> draft;
  PlanOptions options;
};

// The same request for a ruleset that reads models. Errors as above; explicit layers are UNKNOWN_VALUE.
[[nodiscard]] absl::StatusOr<ModelQuestion> ModelQuestionFromProto(
    const planner::v1::CreatePlanRequest& wire);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_CONVERT_REQUEST_H_
