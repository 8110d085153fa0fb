// kvasir status: what the planner knows of a deployment.
#include <array>
#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/rpc/channel.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "planner/cli/remote/deployment_view.h"
#include "planner/cli/remote/remote_commands.h"
#include "planner/cli/remote/session.h"

namespace kvasir::cli {

std::string StatusHelp() { return FlagsHelp(WithSessionFlags({})); }

int RunStatus(const Console& console, Args args) {
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(WithSessionFlags({}), {}, args);
  if (!line.ok()) return BadUsage(console, "status", line.status());
  const absl::StatusOr<Session> session = OpenSession(console, *line);
  if (!session.ok()) return BadUsage(console, "status", session.status());
  const absl::StatusOr<planner::v1::Deployment> deployment = GetDeployment(*session);
  if (!deployment.ok()) return ServiceFailure(console, "status", deployment.status());
  if (session->output == "json") {
    console.out << DeploymentJson(*deployment);
  } else {
    ShowDeployment(console, *deployment);
  }
  return kExitOk;
}

}  // namespace kvasir::cli
