#include "tests/worker/service/worker_rig.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "common/models/model_text.h"
#include "common/plan/plan_text.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_codec.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/service/peer_client.h"

namespace kvasir::testing {
namespace {

google::protobuf::Duration Milliseconds(std::int64_t ms) {
  google::protobuf::Duration duration;
  duration.set_seconds(ms / 1000);
  duration.set_nanos(static_cast<std::int32_t>(ms % 1000 * 1'000'000));
  return duration;
}

WorkerNodeOptions NodeOptions(const RigOptions& rig, std::size_t worker, CommListener& listener,
                              const Clock& clock) {
  WorkerNodeOptions options;
  options.clock = &clock;
  options.tick = std::chrono::milliseconds(10);
  options.make_peer = MakePeerClient;
  options.resources.listener = &listener;
  options.resources.facts = {{"backend", "cpu"}, {"build.version", "test"}};
  options.resources.checkpoint_root = rig.checkpoint_root;
  for (const RankFact& fact : rig.extra_facts(worker)) options.resources.facts.push_back(fact);
  options.resources.make_backend = [](const RankComms& comms, bool reference) {
    CpuOptions cpu;
    cpu.tensor = comms.tensor.get();
    cpu.context = comms.context.get();
    cpu.kernels = reference ? CpuKernels::kReference : CpuKernels::kFast;
    return MakeCpuBackend(cpu);
  };
  for (std::size_t i = 0; i < rig.ranks_per_worker; ++i) {
    options.resources.places.push_back(std::make_shared<MemoryBudget>(rig.memory));
  }
  return options;
}

RigWorker StartWorker(const RigOptions& rig, std::size_t index, const Clock& clock) {
  RigWorker worker;
  auto listener = CommListener::Start({});
  EXPECT_TRUE(listener.ok()) << listener.status();
  worker.listener = *std::move(listener);
  worker.node = std::make_unique<WorkerNode>(NodeOptions(rig, index, *worker.listener, clock));
  WorkerServiceOptions service;
  service.backend = "cpu";
  service.stream_queue_max = rig.stream_queue_max;
  service.comm = {"127.0.0.1", worker.listener->port()};
  worker.service = std::make_unique<WorkerService>(*worker.node, service);
  RpcServerOptions server;
  server.drain_deadline = std::chrono::milliseconds(2'000);
  auto started = RpcServer::Start(server, {worker.service->service()}, {kWorkerServiceName});
  EXPECT_TRUE(started.ok()) << started.status();
  worker.server = *std::move(started);
  worker.channel = MakeChannel(worker.server->address());
  worker.stub = wire::WorkerService::NewStub(worker.channel);
  return worker;
}

}  // namespace

absl::Status StatusOfCall(const grpc::Status& status) { return FromGrpcStatus(status); }

bool RigWorker::IsEmpty() const {
  return node->free_bytes() == node->bytes_per_place() * static_cast<std::int64_t>(node->places());
}

void RigWorker::Kill() {
  stub.reset();
  server.reset();
  service.reset();
  node.reset();
  listener.reset();
}

WorkerRig::WorkerRig(const RigOptions& options) : options_(options) {
  for (std::size_t i = 0; i < options.workers; ++i) workers_.push_back(StartWorker(options, i, clock_));
}

WorkerRig::~WorkerRig() {
  for (RigWorker& worker : workers_) {
    if (worker.service != nullptr) worker.service->Drain();
  }
  for (RigWorker& worker : workers_) worker.Kill();
}

wire::PreparePlanRequest WorkerRig::PrepareRequest(std::size_t worker, const Plan& plan,
                                                   std::int64_t epoch) const {
  wire::PreparePlanRequest request;
  request.set_deployment(kDeployment);
  request.set_epoch(epoch);
  request.set_plan_text(PlanToText(plan));
  request.set_plan_id(PlanId(request.plan_text()));
  request.set_target_model_text(ModelToText(SmallTarget()));
  if (plan.draft_tokens > 0) request.set_draft_model_text(ModelToText(SmallDraft()));
  request.mutable_weights()->set_synthetic_seed(1);
  *request.mutable_lease() = Milliseconds(30'000);
  *request.mutable_comm_timeout() = Milliseconds(10'000);
  std::int32_t rank = 0;
  for (std::size_t i = 0; i < workers_.size() && rank < plan.topology.tp; ++i) {
    for (std::size_t j = 0; j < options_.ranks_per_worker && rank < plan.topology.tp; ++j) {
      wire::RankEndpoint& endpoint = *request.add_rank_map();
      endpoint.set_rank(rank);
      // A worker that was killed keeps its place in the map: that is what a test of its absence wants.
      endpoint.set_worker_address(workers_[i].server != nullptr ? workers_[i].address() : "127.0.0.1:1");
      endpoint.mutable_comm_endpoint()->set_host("127.0.0.1");
      endpoint.mutable_comm_endpoint()->set_port(
          workers_[i].listener != nullptr ? workers_[i].listener->port() : 1);
      if (i == worker) request.add_ranks(rank);
      ++rank;
    }
  }
  return request;
}

wire::CommitPlanRequest WorkerRig::CommitRequest(const Plan& plan, std::int64_t epoch) const {
  wire::CommitPlanRequest request;
  request.set_deployment(kDeployment);
  request.set_epoch(epoch);
  request.set_plan_id(PlanId(PlanToText(plan)));
  *request.mutable_drain_timeout() = Milliseconds(20'000);
  return request;
}

std::vector<absl::Status> WorkerRig::PrepareAll(
    const Plan& plan, std::int64_t epoch, const std::function<void(wire::PreparePlanRequest&)>& change) {
  std::vector<absl::Status> statuses(workers_.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].stub == nullptr) continue;
    threads.emplace_back([&, i] {
      wire::PreparePlanRequest request = PrepareRequest(i, plan, epoch);
      if (change) change(request);
      statuses[i] = Call(*workers_[i].stub, &wire::WorkerService::Stub::PreparePlan, request).status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

absl::Status WorkerRig::CommitAll(const Plan& plan, std::int64_t epoch) {
  absl::Status first;
  for (std::size_t i = workers_.size(); i-- > 0;) {
    const absl::Status status =
        Call(*workers_[i].stub, &wire::WorkerService::Stub::CommitPlan, CommitRequest(plan, epoch)).status();
    if (first.ok()) first = status;
  }
  return first;
}

absl::Status WorkerRig::Apply(const Plan& plan, std::int64_t epoch) {
  // One worker's failure leaves the others waiting for it: all are named, so that the first cause shows.
  absl::Status first;
  std::string all;
  for (const absl::Status& status : PrepareAll(plan, epoch)) {
    if (status.ok()) continue;
    if (first.ok()) first = status;
    all += status.ToString() + "; ";
  }
  if (!first.ok()) return absl::Status(first.code(), all);
  return CommitAll(plan, epoch);
}

absl::Status WorkerRig::ReleaseAll(std::int64_t epoch) {
  absl::Status first;
  for (RigWorker& worker : workers_) {
    if (worker.stub == nullptr) continue;
    wire::ReleasePlanRequest request;
    request.set_deployment(kDeployment);
    request.set_epoch(epoch);
    const absl::Status status = Call(*worker.stub, &wire::WorkerService::Stub::ReleasePlan, request).status();
    if (first.ok()) first = status;
  }
  return first;
}

bool WorkerRig::BecomesEmpty() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < deadline) {
    bool empty = true;
    for (const RigWorker& worker : workers_) empty = empty && (worker.node == nullptr || worker.IsEmpty());
    if (empty) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Plan RigPlan(std::int64_t ranks, std::int64_t draft_tokens) {
  EnginePlanOptions options;
  options.topology = {.tp = ranks, .dcp = ranks, .interleave = 1};
  options.draft_tokens = draft_tokens;
  return MakeEnginePlan(options);
}

wire::DecodeRequest JoinMessage(std::int64_t tag, const std::vector<std::int32_t>& prompt,
                                std::int64_t max_tokens, bool speculate) {
  wire::DecodeRequest message;
  wire::JoinRequest& join = *message.mutable_join();
  join.set_tag(tag);
  join.set_deployment(kDeployment);
  join.mutable_prompt_token_ids()->Assign(prompt.begin(), prompt.end());
  join.set_max_tokens(max_tokens);
  join.set_speculate(speculate);
  return message;
}

void Take(const wire::DecodeResponse& response, DecodeResult& result) {
  Decoded& request = result.requests[response.tag()];
  EXPECT_FALSE(request.finished || request.failed) << "an event after the last one of tag " << response.tag();
  switch (response.event_case()) {
    case wire::DecodeResponse::kJoined:
      request.joined = true;
      request.epoch = response.joined().epoch();
      request.seed = response.joined().seed();
      break;
    case wire::DecodeResponse::kTokens:
      EXPECT_TRUE(request.joined);
      request.tokens.insert(request.tokens.end(), response.tokens().token_ids().begin(),
                            response.tokens().token_ids().end());
      request.logprobs.insert(request.logprobs.end(), response.tokens().logprobs().begin(),
                              response.tokens().logprobs().end());
      break;
    case wire::DecodeResponse::kFinished:
      request.finished = true;
      request.finish = response.finished();
      break;
    case wire::DecodeResponse::kError:
      request.failed = true;
      request.error = response.error();
      break;
    case wire::DecodeResponse::EVENT_NOT_SET:
      ADD_FAILURE() << "a response without an event";
  }
}

std::unique_ptr<wire::WorkerService::Stub> NarrowStub(const std::string& address) {
  grpc::ChannelArguments narrow;
  narrow.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  narrow.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64);
  return wire::WorkerService::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), narrow));
}

DecodeResult DecodeAllOf(wire::WorkerService::Stub& stub, const std::vector<wire::DecodeRequest>& messages,
                         std::chrono::milliseconds timeout) {
  DecodeResult result;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  const auto stream = stub.Decode(&context);
  for (const wire::DecodeRequest& message : messages) {
    if (!stream->Write(message)) break;
  }
  stream->WritesDone();
  wire::DecodeResponse response;
  while (stream->Read(&response)) Take(response, result);
  result.status = StatusOfCall(stream->Finish());
  return result;
}

}  // namespace kvasir::testing
