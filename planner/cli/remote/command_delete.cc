// kvasir delete: drains a deployment and frees it on all workers.
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/rpc/channel.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "planner/cli/remote/remote_commands.h"
#include "planner/cli/remote/session.h"

namespace kvasir::cli {
namespace {

constexpr std::array kFlags = {
    Flag{"drain-timeout", "TIME", "how long running sequences may go on (30s)"},
};

void Show(const Console& console, const Session& session,
          const planner::v1::DeleteDeploymentResponse& response) {
  if (session.output == "json") {
    nlohmann::ordered_json json;
    json["schema"] = "kvasir.delete/1";
    json["deployment"] = session.deployment;
    json["epoch"] = response.epoch();
    json["unreachable_workers"] = nlohmann::ordered_json::array();
    for (const auto& worker : response.unreachable_workers()) json["unreachable_workers"].push_back(worker);
    console.out << json.dump(2) << "\n";
    return;
  }
  console.out << absl::StrFormat("deleted   deployment %s, everything retired under epoch %d\n",
                                 session.deployment, response.epoch());
  for (const auto& worker : response.unreachable_workers()) {
    console.out << absl::StrFormat("  not reached: %s; it fences itself when it next sees a higher epoch\n",
                                   worker);
  }
}

}  // namespace

std::string DeleteHelp() { return FlagsHelp(WithSessionFlags(kFlags)); }

int RunDelete(const Console& console, Args args) {
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(WithSessionFlags(kFlags), {}, args);
  if (!line.ok()) return BadUsage(console, "delete", line.status());
  const absl::StatusOr<Session> session = OpenSession(console, *line);
  if (!session.ok()) return BadUsage(console, "delete", session.status());
  const absl::StatusOr<std::chrono::milliseconds> drain =
      DurationOr(*line, "drain-timeout", std::chrono::milliseconds(30'000));
  if (!drain.ok()) return BadUsage(console, "delete", drain.status());

  const auto stub = planner::v1::PlannerService::NewStub(session->channel);
  grpc::ClientContext context;
  SetTimeout(context, session->timeout + *drain);
  planner::v1::DeleteDeploymentRequest request;
  request.set_deployment(session->deployment);
  request.mutable_drain_timeout()->set_seconds(drain->count() / 1000);
  request.mutable_drain_timeout()->set_nanos(static_cast<int>(drain->count() % 1000) * 1'000'000);
  planner::v1::DeleteDeploymentResponse response;
  const absl::Status status = FromPeer(stub->DeleteDeployment(&context, request, &response), session->server);
  if (!status.ok()) return ServiceFailure(console, "delete", status);
  Show(console, *session, response);
  return kExitOk;
}

}  // namespace kvasir::cli
