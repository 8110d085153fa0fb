#include "tests/tools/soak_servers.h"

#include <signal.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/plan/plan_text.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_codec.h"
#include "tests/testing/process.h"
#include "tests/tools/soak_questions.h"

namespace kvasir::soak {
namespace {

namespace wire = worker::v1;

constexpr char kTarget[] = KVASIR_SOURCE_DIR "/tests/data/pair/target";
constexpr char kDraft[] = KVASIR_SOURCE_DIR "/tests/data/pair/draft";
constexpr char kCheckpointRoot[] = "--checkpoint-root=" KVASIR_SOURCE_DIR "/tests/data";
constexpr std::chrono::seconds kDrain{10};
constexpr std::chrono::seconds kStopMax = kDrain + std::chrono::seconds(5);
constexpr std::chrono::seconds kConnect{30};
constexpr std::size_t kLogBytes = 4000;

// Eight slots, and blocks for one request of the whole context or about seven short ones: both refusals
// occur.
std::vector<std::string> PlanFlags() {
  return {"--target",
          kTarget,
          "--draft",
          kDraft,
          "--draft-tokens",
          "5",
          "--tp",
          "2",
          "--dcp",
          "2",
          "--kv-memory",
          "1280KiB",
          "--context",
          std::to_string(kContextTokens),
          "--prefill-chunk",
          std::to_string(kPrefillChunk),
          "--max-requests",
          "8"};
}

absl::StatusOr<std::int64_t> SequencesOf(testing::WorkerServer& worker) {
  grpc::ClientContext context;
  SetTimeout(context, std::chrono::seconds(10));
  wire::GetWorkerStateResponse state;
  KVASIR_RETURN_IF_ERROR(FromGrpcStatus(worker.stub->GetWorkerState(&context, {}, &state)));
  std::int64_t sequences = 0;
  for (const wire::DeploymentState& deployment : state.deployments()) {
    if (!deployment.failure().empty())
      return absl::InternalError("the deployment failed: " + deployment.failure());
    sequences += deployment.sequence_count();
  }
  return sequences;
}

absl::Status StopOne(const char* name, testing::Server& server) {
  server.process->Signal(SIGTERM);
  const std::optional<int> exit = server.process->WaitForExit(kStopMax);
  if (exit == 0) return absl::OkStatus();
  return absl::InternalError(exit.has_value()
                                 ? absl::StrFormat("%s ended with exit code %d", name, *exit)
                                 : absl::StrFormat("%s did not end in %d s", name, kStopMax.count()));
}

}  // namespace

absl::StatusOr<std::string> SoakServers::Run(std::vector<std::string> command) const {
  command.insert(command.begin(), testing::BinaryPath("kvasir"));
  const testing::Finished finished = testing::RunToEnd(command, {{"XDG_STATE_HOME", state_.path()}});
  if (finished.exit_code == 0) return finished.output;
  return absl::InternalError(
      absl::StrFormat("kvasir %s: exit code %d: %s", command[1], finished.exit_code, finished.output));
}

absl::StatusOr<std::unique_ptr<SoakServers>> SoakServers::Start() {
  std::unique_ptr<SoakServers> servers(new SoakServers);
  const std::string drain = absl::StrFormat("--drain-seconds=%d", kDrain.count());
  servers->planner_ =
      testing::StartServer("kvasir-planner", {"--state-dir=" + servers->state_.path() + "/planner", drain});
  for (testing::WorkerServer& worker : servers->workers_) {
    testing::Server& server = worker;
    server = testing::StartServer("kvasir-worker", {kCheckpointRoot, "--memory=64MiB", drain});
    if (worker.channel != nullptr) worker.stub = wire::WorkerService::NewStub(worker.channel);
  }
  for (const testing::Server* server :
       {&servers->planner_, static_cast<testing::Server*>(&servers->workers_[0]),
        static_cast<testing::Server*>(&servers->workers_[1])}) {
    if (server->channel == nullptr) return absl::InternalError("a server did not start");
  }
  KVASIR_RETURN_IF_ERROR(servers->Apply());
  return servers;
}

absl::Status SoakServers::Apply() {
  std::vector<std::string> plan = PlanFlags();
  plan.insert(plan.begin(), "plan");
  plan.insert(plan.end(), {"--output", "text"});
  KVASIR_ASSIGN_OR_RETURN(const std::string text, Run(plan));
  const std::string workers = workers_[0].address + "," + workers_[1].address;
  return Run({"apply", PlanId(text), "--server", planner_.address, "--workers", workers, "--deployment",
              kDeployment, "--target-checkpoint", "pair/target", "--draft-checkpoint", "pair/draft"})
      .status();
}

std::unique_ptr<wire::WorkerService::Stub> SoakServers::OwnConnection() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto channel =
      grpc::CreateCustomChannel(workers_[0].address, grpc::InsecureChannelCredentials(), arguments);
  // On a loaded machine a first attempt may pass its time, which says nothing of the worker.
  channel->WaitForConnected(std::chrono::system_clock::now() + kConnect);
  return wire::WorkerService::NewStub(channel);
}

absl::Status SoakServers::CheckIdle() {
  std::int64_t sequences = 1;
  for (int tries = 0; tries < 100 && sequences > 0; ++tries) {
    sequences = 0;
    for (testing::WorkerServer& worker : workers_) {
      KVASIR_ASSIGN_OR_RETURN(const std::int64_t its, SequencesOf(worker));
      sequences += its;
    }
    if (sequences > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (sequences == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat("%d sequences run though no client is left", sequences));
}

absl::Status SoakServers::Stop() {
  KVASIR_RETURN_IF_ERROR(Run({"delete", "--server", planner_.address, "--deployment", kDeployment}).status());
  for (testing::WorkerServer& worker : workers_) {
    if (!testing::BecomesEmpty(worker, kStopMax)) {
      return absl::InternalError("a worker still holds memory of the deleted deployment");
    }
  }
  KVASIR_RETURN_IF_ERROR(StopOne("worker-0", workers_[0]));
  KVASIR_RETURN_IF_ERROR(StopOne("worker-1", workers_[1]));
  return StopOne("planner", planner_);
}

std::string SoakServers::Logs() const {
  std::string logs;
  for (const testing::Server* server : {&planner_, static_cast<const testing::Server*>(&workers_[0]),
                                        static_cast<const testing::Server*>(&workers_[1])}) {
    if (server->process == nullptr) continue;
    const std::string output = server->process->output();
    logs += server->address + ":\n" + output.substr(output.size() - std::min(output.size(), kLogBytes));
  }
  return logs;
}

}  // namespace kvasir::soak
