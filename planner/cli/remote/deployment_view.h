// A deployment as the planner tells it, for people and for programs.
#ifndef KVASIR_PLANNER_CLI_REMOTE_DEPLOYMENT_VIEW_H_
#define KVASIR_PLANNER_CLI_REMOTE_DEPLOYMENT_VIEW_H_

#include <string>

#include "absl/status/statusor.h"
#include "kvasir/planner/v1/deployment.pb.h"
#include "planner/cli/console.h"
#include "planner/cli/remote/session.h"

namespace kvasir::cli {

// The session's deployment. The error of the service, or of the transport with the peer's address.
[[nodiscard]] absl::StatusOr<planner::v1::Deployment> GetDeployment(const Session& session);

// "active", "preparing", ...
[[nodiscard]] std::string DeploymentStateName(planner::v1::DeploymentState state);

void ShowDeployment(const Console& console, const planner::v1::Deployment& deployment);

// One JSON object with a newline. Schema kvasir.deployment/1.
[[nodiscard]] std::string DeploymentJson(const planner::v1::Deployment& deployment);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_REMOTE_DEPLOYMENT_VIEW_H_
