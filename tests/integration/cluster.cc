#include "tests/integration/cluster.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_codec.h"

namespace kvasir::testing {
namespace {

constexpr char kDeployment[] = "demo";
constexpr std::int64_t kWorkerBytes = std::int64_t{64} << 20;

kvasir::plan::v1::ModelSource Catalogue(const char* name) {
  kvasir::plan::v1::ModelSource source;
  source.set_catalogue_name(name);
  return source;
}

void Deadline(grpc::ClientContext& context, std::chrono::milliseconds timeout) {
  context.set_deadline(std::chrono::system_clock::now() + timeout);
}

bool IsEmpty(worker::v1::WorkerService::Stub& stub) {
  worker::v1::DescribeWorkerResponse facts;
  worker::v1::GetWorkerStateResponse state;
  grpc::ClientContext facts_context;
  grpc::ClientContext state_context;
  Deadline(facts_context, std::chrono::seconds(10));
  Deadline(state_context, std::chrono::seconds(10));
  if (!stub.DescribeWorker(&facts_context, {}, &facts).ok()) return false;
  if (!stub.GetWorkerState(&state_context, {}, &state).ok()) return false;
  for (const worker::v1::DeploymentState& deployment : state.deployments()) {
    if (deployment.has_running() || deployment.has_draining() || deployment.has_pending()) return false;
  }
  return facts.free_bytes() == facts.memory_bytes_per_rank() * facts.rank_count_max();
}

}  // namespace

Server StartServer(const std::string& program, std::vector<std::string> flags) {
  Server server;
  flags.insert(flags.begin(), BinaryPath(program));
  flags.emplace_back("--listen=127.0.0.1:0");
  auto process = Process::Start(flags);
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return server;
  server.process = *std::move(process);
  const absl::StatusOr<std::string> address = server.process->WaitForText("listening on ");
  EXPECT_TRUE(address.ok()) << address.status();
  if (!address.ok()) return server;
  server.address = *address;
  const absl::StatusOr<Address> parsed = ParseAddress(server.address);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (parsed.ok()) server.channel = MakeChannel(*parsed);
  return server;
}

WorkerServer StartWorker(const std::vector<std::string>& flags) {
  std::vector<std::string> all = flags;
  all.push_back("--memory=" + std::to_string(kWorkerBytes));
  all.emplace_back("--drain-seconds=5");
  WorkerServer server{StartServer("kvasir-worker", all), nullptr};
  server.stub = worker::v1::WorkerService::NewStub(server.channel);
  return server;
}

PlannerServer StartPlanner(const std::string& state_dir) {
  PlannerServer server{StartServer("kvasir-planner", {"--state-dir=" + state_dir, "--drain-seconds=5"}),
                       nullptr};
  server.stub = planner::v1::PlannerService::NewStub(server.channel);
  return server;
}

absl::StatusOr<planner::v1::ApplyPlanRequest> PlanDemoPair(planner::v1::PlannerService::Stub& planner) {
  planner::v1::CreatePlanRequest request;
  *request.mutable_target() = Catalogue("demo-target");
  *request.mutable_draft() = Catalogue("demo-dspark");
  kvasir::plan::v1::PlanOptions& options = *request.mutable_options();
  options.mutable_topology()->set_tp(2);
  options.mutable_topology()->set_dcp(2);
  options.add_kv_memory_bytes(std::int64_t{16} << 20);
  options.add_context_tokens(512);
  planner::v1::CreatePlanResponse response;
  grpc::ClientContext context;
  Deadline(context, std::chrono::seconds(30));
  absl::Status status = FromGrpcStatus(planner.CreatePlan(&context, request, &response));
  if (!status.ok()) return status;
  if (!response.has_plan()) return absl::FailedPreconditionError("no plan: " + response.ShortDebugString());
  planner::v1::ApplyPlanRequest apply;
  apply.set_deployment(kDeployment);
  apply.set_plan_text(response.plan().canonical_text());
  apply.set_plan_id(response.plan().plan_id());
  apply.set_target_model_text(response.target_model_text());
  apply.set_draft_model_text(response.draft_model_text());
  apply.set_weight_seed(1);
  apply.mutable_comm_timeout()->set_seconds(5);
  apply.mutable_prepare_timeout()->set_seconds(60);
  apply.mutable_commit_timeout()->set_seconds(2);
  return apply;
}

ApplyOutcome Apply(planner::v1::PlannerService::Stub& planner, planner::v1::ApplyPlanRequest request,
                   const std::vector<std::string>& workers, std::chrono::milliseconds timeout) {
  request.clear_workers();
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    planner::v1::WorkerAssignment& assignment = *request.add_workers();
    assignment.set_address(workers[rank]);
    assignment.add_ranks(static_cast<std::int32_t>(rank));
  }
  ApplyOutcome outcome;
  grpc::ClientContext context;
  Deadline(context, timeout);
  const auto stream = planner.ApplyPlan(&context, request);
  planner::v1::ApplyPlanResponse event;
  while (stream->Read(&event)) outcome.events.push_back(event);
  outcome.status = FromGrpcStatus(stream->Finish());
  return outcome;
}

StreamOutcome DecodePrompts(worker::v1::WorkerService::Stub& leader,
                            const std::vector<std::vector<std::int32_t>>& prompts, std::int64_t max_tokens,
                            bool speculate, std::chrono::milliseconds timeout) {
  StreamOutcome outcome;
  grpc::ClientContext context;
  Deadline(context, timeout);
  const auto stream = leader.Decode(&context);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    worker::v1::DecodeRequest request;
    worker::v1::JoinRequest& join = *request.mutable_join();
    join.set_tag(static_cast<std::int64_t>(i) + 1);
    join.set_deployment(kDeployment);
    join.mutable_prompt_token_ids()->Assign(prompts[i].begin(), prompts[i].end());
    join.set_max_tokens(max_tokens);
    join.set_speculate(speculate);
    if (!stream->Write(request)) break;
  }
  stream->WritesDone();
  worker::v1::DecodeResponse response;
  while (stream->Read(&response)) {
    std::vector<std::int32_t>& tokens = outcome.tokens[response.tag()];
    const auto& ids = response.tokens().token_ids();
    tokens.insert(tokens.end(), ids.begin(), ids.end());
    if (response.has_finished()) outcome.finished[response.tag()] = response.finished();
    if (response.has_error()) outcome.errors[response.tag()] = response.error();
  }
  outcome.status = FromGrpcStatus(stream->Finish());
  return outcome;
}

bool BecomesEmpty(WorkerServer& worker, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    if (IsEmpty(*worker.stub)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "kvasir-XXXXXX").string();
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace kvasir::testing
