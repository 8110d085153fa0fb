#include "planner/dispatch/grpc_worker_caller.h"

#include <chrono>
#include <utility>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/rpc/channel.h"

namespace kvasir {
namespace {

namespace wire = ::kvasir::worker::v1;

void SetMs(google::protobuf::Duration& duration, std::int64_t ms) {
  duration.set_seconds(ms / 1000);
  duration.set_nanos(static_cast<std::int32_t>(ms % 1000) * 1'000'000);
}

void Observe(const wire::DeploymentState& state, WorkerReply& reply) {
  reply.seen.max_epoch = Epoch(state.max_epoch());
  reply.seen.holds_memory = state.has_running() || state.has_draining() || state.has_pending();
  reply.running_epoch = Epoch(state.running().epoch());
  reply.failure = state.failure();
}

wire::PreparePlanRequest PrepareRequest(const WorkerCall& call) {
  wire::PreparePlanRequest request;
  request.set_deployment(call.deployment);
  request.set_epoch(call.epoch.value());
  request.set_plan_id(call.spec.plan_id);
  request.set_plan_text(call.spec.plan_text);
  request.set_target_model_text(call.spec.target_model_text);
  request.set_draft_model_text(call.spec.draft_model_text);
  if (call.spec.target_checkpoint.empty()) {
    request.mutable_weights()->set_synthetic_seed(call.spec.weight_seed);
  } else {
    wire::CheckpointSource& checkpoint = *request.mutable_weights()->mutable_checkpoint();
    checkpoint.set_target_directory(call.spec.target_checkpoint);
    checkpoint.set_draft_directory(call.spec.draft_checkpoint);
  }
  for (const std::int32_t rank : call.target.ranks) {
    request.add_ranks(rank);
  }
  for (const RankHome& home : call.rank_map) {
    wire::RankEndpoint* endpoint = request.add_rank_map();
    endpoint->set_rank(home.rank);
    endpoint->set_worker_address(home.worker_address);
    endpoint->mutable_comm_endpoint()->set_host(home.comm_host);
    endpoint->mutable_comm_endpoint()->set_port(home.comm_port);
  }
  SetMs(*request.mutable_lease(), LeaseMs(call.spec.times));
  SetMs(*request.mutable_comm_timeout(), call.spec.times.comm_ms);
  request.set_mode(call.mode == ApplyMode::kReplace ? wire::APPLY_MODE_REPLACE
                                                    : wire::APPLY_MODE_SIDE_BY_SIDE);
  if (call.preflight.has_value()) {
    request.mutable_preflight()->set_replays_per_graph(call.preflight->replays_per_graph);
    request.mutable_preflight()->set_compared_rows(call.preflight->compared_rows);
  }
  return request;
}

void TakePrepared(const WorkerCall& call, const wire::PreparePlanResponse& response, WorkerReply& reply) {
  reply.prepared.set_worker_address(call.target.address);
  *reply.prepared.mutable_measurements() = response.measurements();
  *reply.prepared.mutable_graph_timings() = response.preflight().graphs();
  *reply.prepared.mutable_comparisons() = response.preflight().comparisons();
  reply.seen.max_epoch = call.epoch;
  reply.seen.holds_memory = true;
}

}  // namespace

// What one call keeps alive until its answer.
template <class Request, class Response>
struct GrpcWorkerCaller::Flight {
  Request request;
  Response response;
  grpc::ClientContext context;
  std::shared_ptr<wire::WorkerService::Stub> stub;  // shared: the caller may be stopped while the call is out
};

GrpcWorkerCaller::~GrpcWorkerCaller() { Stop(); }

void GrpcWorkerCaller::Stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  for (grpc::ClientContext* context : flying_) {
    context->TryCancel();
  }
  landed_.wait(lock, [this] { return flying_.empty(); });
}

std::shared_ptr<wire::WorkerService::Stub> GrpcWorkerCaller::StubOf(const std::string& address) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<wire::WorkerService::Stub>& stub = stubs_[address];
  if (stub == nullptr) {
    // Addresses were checked where they came in; one that is bad now only makes the call fail.
    stub = wire::WorkerService::NewStub(MakeChannel(ParseAddress(address).value_or(Address())));
  }
  return stub;
}

template <class Request, class Response, class Method, class Take>
void GrpcWorkerCaller::Send(const WorkerCall& call, Request request, Method method, Take take,
                            std::function<void(WorkerReply)> done) {
  auto flight = std::make_shared<Flight<Request, Response>>();
  flight->request = std::move(request);
  flight->stub = StubOf(call.target.address);
  SetTimeout(flight->context, std::chrono::milliseconds(call.timeout_ms));
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      flight->context.TryCancel();
    }
    flying_.insert(&flight->context);
  }
  (flight->stub->async()->*method)(
      &flight->context, &flight->request, &flight->response,
      [this, flight, call, take = std::move(take), done = std::move(done)](const grpc::Status& status) {
        WorkerReply reply{.status = FromPeer(status, call.target.address)};
        if (reply.status.ok()) {
          take(flight->response, reply);
        }
        done(std::move(reply));
        const std::lock_guard lock(mutex_);
        flying_.erase(&flight->context);
        landed_.notify_all();
      });
}

void GrpcWorkerCaller::Query(const WorkerCall& call, std::function<void(WorkerReply)> done) {
  using Async = wire::WorkerService::StubInterface::async_interface;
  using Describe = void (Async::*)(grpc::ClientContext*, const wire::DescribeWorkerRequest*,
                                   wire::DescribeWorkerResponse*, std::function<void(grpc::Status)>);
  using GetState = void (Async::*)(grpc::ClientContext*, const wire::GetWorkerStateRequest*,
                                   wire::GetWorkerStateResponse*, std::function<void(grpc::Status)>);
  const auto take_description = [](const wire::DescribeWorkerResponse& response, WorkerReply& reply) {
    reply.seen.comm_host = response.comm_endpoint().host();
    reply.seen.comm_port = response.comm_endpoint().port();
    reply.seen.rank_count_max = response.rank_count_max();
    for (const wire::Fact& fact : response.facts()) {
      reply.seen.facts.emplace_back(fact.name(), fact.value());
    }
  };
  auto then = [this, call, done = std::move(done)](WorkerReply described) {
    if (!described.status.ok()) {
      done(std::move(described));
      return;
    }
    wire::GetWorkerStateRequest request;
    request.set_deployment(call.deployment);
    const auto take_state = [described](const wire::GetWorkerStateResponse& response, WorkerReply& reply) {
      reply = described;
      for (const wire::DeploymentState& state : response.deployments()) {
        Observe(state, reply);
      }
    };
    Send<wire::GetWorkerStateRequest, wire::GetWorkerStateResponse>(
        call, request, static_cast<GetState>(&Async::GetWorkerState), take_state, done);
  };
  Send<wire::DescribeWorkerRequest, wire::DescribeWorkerResponse>(
      call, wire::DescribeWorkerRequest(), static_cast<Describe>(&Async::DescribeWorker), take_description,
      std::move(then));
}

void GrpcWorkerCaller::Call(const WorkerCall& call, std::function<void(WorkerReply)> done) {
  using Async = wire::WorkerService::StubInterface::async_interface;
  const auto take_state = [](const auto& response, WorkerReply& reply) { Observe(response.state(), reply); };
  switch (call.kind) {
    case CallKind::kQuery:
      return Query(call, std::move(done));
    case CallKind::kPrepare: {
      using Method = void (Async::*)(grpc::ClientContext*, const wire::PreparePlanRequest*,
                                     wire::PreparePlanResponse*, std::function<void(grpc::Status)>);
      const auto take = [call](const wire::PreparePlanResponse& response, WorkerReply& reply) {
        TakePrepared(call, response, reply);
      };
      return Send<wire::PreparePlanRequest, wire::PreparePlanResponse>(
          call, PrepareRequest(call), static_cast<Method>(&Async::PreparePlan), take, std::move(done));
    }
    case CallKind::kCommit: {
      using Method = void (Async::*)(grpc::ClientContext*, const wire::CommitPlanRequest*,
                                     wire::CommitPlanResponse*, std::function<void(grpc::Status)>);
      wire::CommitPlanRequest request;
      request.set_deployment(call.deployment);
      request.set_epoch(call.epoch.value());
      request.set_plan_id(call.spec.plan_id);
      SetMs(*request.mutable_drain_timeout(), call.drain_ms);
      return Send<wire::CommitPlanRequest, wire::CommitPlanResponse>(
          call, request, static_cast<Method>(&Async::CommitPlan), take_state, std::move(done));
    }
    case CallKind::kAbort: {
      using Method = void (Async::*)(grpc::ClientContext*, const wire::AbortPlanRequest*,
                                     wire::AbortPlanResponse*, std::function<void(grpc::Status)>);
      wire::AbortPlanRequest request;
      request.set_deployment(call.deployment);
      request.set_epoch(call.epoch.value());
      request.set_plan_id(call.spec.plan_id);
      request.set_reason("the apply ended before its commit");
      return Send<wire::AbortPlanRequest, wire::AbortPlanResponse>(
          call, request, static_cast<Method>(&Async::AbortPlan), take_state, std::move(done));
    }
    case CallKind::kRelease: {
      using Method = void (Async::*)(grpc::ClientContext*, const wire::ReleasePlanRequest*,
                                     wire::ReleasePlanResponse*, std::function<void(grpc::Status)>);
      wire::ReleasePlanRequest request;
      request.set_deployment(call.deployment);
      request.set_epoch(call.epoch.value());
      SetMs(*request.mutable_drain_timeout(), call.drain_ms);
      return Send<wire::ReleasePlanRequest, wire::ReleasePlanResponse>(
          call, request, static_cast<Method>(&Async::ReleasePlan), take_state, std::move(done));
    }
  }
}

}  // namespace kvasir
