// Applies and deployments between the wire and the dispatcher.
#ifndef KVASIR_PLANNER_SERVICE_CONVERT_APPLY_H_
#define KVASIR_PLANNER_SERVICE_CONVERT_APPLY_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/dispatch/apply_machine.h"
#include "planner/dispatch/dispatcher.h"

namespace kvasir {

struct ApplyTask {
  std::string deployment;
  StartApplyEvent start;
  std::optional<PreflightSettings> preflight;
  std::int64_t planned_graphs = 0;  // per rank
};

// InvalidArgument with reason and field path. Parses, hashes and verifies the plan, parses the models and
// compares their digests with the plan's, and gives every rank of the plan one worker.
[[nodiscard]] absl::StatusOr<ApplyTask> ApplyFromProto(const planner::v1::ApplyPlanRequest& wire);

[[nodiscard]] planner::v1::Deployment DeploymentToProto(const DeploymentView& view);
[[nodiscard]] planner::v1::ApplyPlanResponse ProgressToProto(const ApplyProgress& progress,
                                                             std::int64_t planned_graphs);
[[nodiscard]] planner::v1::ApplyPlanResponse DoneToProto(const ApplyEnd& end);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_CONVERT_APPLY_H_
