#include "planner/cli/remote/deployment_view.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_format.h"
#include "common/rpc/channel.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string RanksText(const planner::v1::WorkerAssignment& worker) {
  std::string out;
  for (const auto rank : worker.ranks()) out += (out.empty() ? "" : ",") + std::to_string(rank);
  return out;
}

}  // namespace

absl::StatusOr<planner::v1::Deployment> GetDeployment(const Session& session) {
  const auto stub = planner::v1::PlannerService::NewStub(session.channel);
  grpc::ClientContext context;
  SetTimeout(context, session.timeout);
  planner::v1::GetDeploymentRequest request;
  request.set_deployment(session.deployment);
  planner::v1::GetDeploymentResponse response;
  absl::Status status = FromPeer(stub->GetDeployment(&context, request, &response), session.server);
  if (!status.ok()) return status;
  return response.deployment();
}

std::string DeploymentStateName(planner::v1::DeploymentState state) {
  constexpr std::string_view kPrefix = "DEPLOYMENT_STATE_";
  std::string name = planner::v1::DeploymentState_Name(state);
  if (name.size() <= kPrefix.size()) return "unknown";
  name.erase(0, kPrefix.size());
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

void ShowDeployment(const Console& console, const planner::v1::Deployment& deployment) {
  const bool active = deployment.state() == planner::v1::DEPLOYMENT_STATE_ACTIVE;
  console.out << absl::StrFormat(
      "%s   deployment %s\n\n",
      Inked(console, active ? Ink::kGood : Ink::kBold, DeploymentStateName(deployment.state())),
      deployment.name());
  TextTable table("ll");
  const auto row = [&table](std::string name, std::string value) {
    table.Row({std::move(name), std::move(value)});
  };
  if (!deployment.plan_id().empty()) {
    row("serves",
        absl::StrFormat("plan %s, epoch %d", deployment.plan_id().substr(0, 12), deployment.epoch()));
  } else {
    row("serves", "nothing");
  }
  if (!deployment.pending_plan_id().empty()) {
    row("applying", absl::StrFormat("plan %s, epoch %d", deployment.pending_plan_id().substr(0, 12),
                                    deployment.pending_epoch()));
  }
  if (!deployment.leader_address().empty()) row("leader", deployment.leader_address());
  for (const auto& worker : deployment.workers()) {
    row("worker", absl::StrFormat("%s   ranks %s", worker.address(), RanksText(worker)));
  }
  if (deployment.has_last_error()) {
    row("last error", deployment.last_error().reason());
    row("", deployment.last_error().message());
  }
  console.out << table.Text(2);
}

std::string DeploymentJson(const planner::v1::Deployment& deployment) {
  Json json;
  json["schema"] = "kvasir.deployment/1";
  json["deployment"] = deployment.name();
  json["state"] = DeploymentStateName(deployment.state());
  json["epoch"] = deployment.epoch();
  json["plan_id"] = deployment.plan_id();
  json["leader_address"] = deployment.leader_address();
  json["pending_epoch"] = deployment.pending_epoch();
  json["pending_plan_id"] = deployment.pending_plan_id();
  json["workers"] = Json::array();
  for (const auto& worker : deployment.workers()) {
    Json ranks = Json::array();
    for (const auto rank : worker.ranks()) ranks.push_back(rank);
    json["workers"].push_back({{"address", worker.address()}, {"ranks", ranks}});
  }
  json["last_error"] = nullptr;
  if (deployment.has_last_error()) {
    json["last_error"] = {{"code", deployment.last_error().code()},
                          {"reason", deployment.last_error().reason()},
                          {"message", deployment.last_error().message()}};
  }
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvasir::cli
