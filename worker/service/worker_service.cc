#include "worker/service/worker_service.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/rpc/call.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "worker/service/convert_decode.h"
#include "worker/service/convert_fields.h"
#include "worker/service/convert_prepare.h"
#include "worker/service/convert_step.h"
#include "worker/service/decode_stream.h"

namespace kvasir {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
namespace wire = worker::v1;

constexpr std::chrono::minutes kPrepareDeadlineDefault{10};
constexpr DurationRange kDrain{std::chrono::milliseconds(0), std::chrono::hours(1)};
constexpr std::size_t kAbortReasonBytesMax = 256;

using Raw = wire::WorkerService::WithRawCallbackMethod_DescribeWorker<
    wire::WorkerService::WithRawCallbackMethod_PreparePlan<
        wire::WorkerService::WithRawCallbackMethod_CommitPlan<
            wire::WorkerService::WithRawCallbackMethod_AbortPlan<
                wire::WorkerService::WithRawCallbackMethod_ReleasePlan<
                    wire::WorkerService::WithRawCallbackMethod_GetWorkerState<
                        wire::WorkerService::WithRawCallbackMethod_ExecuteStep<
                            wire::WorkerService::WithRawCallbackMethod_Decode<
                                wire::WorkerService::Service>>>>>>>>;

absl::StatusOr<PlanKey> ToKey(std::int64_t epoch, const std::string& plan_id) {
  PlanKey key;
  KVASIR_ASSIGN_OR_RETURN(key.epoch, ToEpoch("epoch", epoch));
  KVASIR_RETURN_IF_ERROR(CheckPlanId("plan_id", plan_id));
  key.plan_id = plan_id;
  return key;
}

}  // namespace

class WorkerService::Impl final : public Raw {
 public:
  Impl(WorkerNode& node, const WorkerServiceOptions& options)
      : node_(node),
        options_(options),
        streams_(options.stream_queue_max),
        control_(options.control_threads),
        prepare_(options.prepare_threads),
        steps_(options.step_threads) {}

  ServerUnaryReactor* DescribeWorker(CallbackServerContext* context, const ByteBuffer* in,
                                     ByteBuffer* out) override {
    return Serve<wire::DescribeWorkerRequest, wire::DescribeWorkerResponse>(context, in, out, control_,
                                                                            &Impl::Describe);
  }
  ServerUnaryReactor* PreparePlan(CallbackServerContext* context, const ByteBuffer* in,
                                  ByteBuffer* out) override {
    return Serve<wire::PreparePlanRequest, wire::PreparePlanResponse>(
        context, in, out, prepare_, &Impl::Prepare, kPrepareDeadlineDefault);
  }
  ServerUnaryReactor* CommitPlan(CallbackServerContext* context, const ByteBuffer* in,
                                 ByteBuffer* out) override {
    return Serve<wire::CommitPlanRequest, wire::CommitPlanResponse>(context, in, out, control_,
                                                                    &Impl::Commit);
  }
  ServerUnaryReactor* AbortPlan(CallbackServerContext* context, const ByteBuffer* in,
                                ByteBuffer* out) override {
    return Serve<wire::AbortPlanRequest, wire::AbortPlanResponse>(context, in, out, control_, &Impl::Abort);
  }
  ServerUnaryReactor* ReleasePlan(CallbackServerContext* context, const ByteBuffer* in,
                                  ByteBuffer* out) override {
    return Serve<wire::ReleasePlanRequest, wire::ReleasePlanResponse>(context, in, out, control_,
                                                                      &Impl::Release);
  }
  ServerUnaryReactor* GetWorkerState(CallbackServerContext* context, const ByteBuffer* in,
                                     ByteBuffer* out) override {
    return Serve<wire::GetWorkerStateRequest, wire::GetWorkerStateResponse>(context, in, out, control_,
                                                                            &Impl::State);
  }
  ServerUnaryReactor* ExecuteStep(CallbackServerContext* context, const ByteBuffer* in,
                                  ByteBuffer* out) override {
    return Serve<wire::ExecuteStepRequest, wire::ExecuteStepResponse>(context, in, out, steps_,
                                                                      &Impl::Execute);
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Decode(CallbackServerContext* /*context*/) override {
    return streams_.Open(node_);
  }

  void Drain() {
    node_.StopAccepting();
    streams_.EndIdle();
  }

 private:
  template <class Request, class Response>
  ServerUnaryReactor* Serve(CallbackServerContext* context, const ByteBuffer* in, ByteBuffer* out,
                            CallPool& pool,
                            absl::StatusOr<Response> (Impl::*handler)(const Request&, const CallContext&),
                            std::chrono::milliseconds deadline = kUnaryDeadlineDefault) {
    return ServeUnary<Request, Response>(
        context, in, out, pool,
        [this, handler](const Request& request, const CallContext& call) {
          return (this->*handler)(request, call);
        },
        deadline);
  }

  absl::StatusOr<wire::DescribeWorkerResponse> Describe(const wire::DescribeWorkerRequest& /*request*/,
                                                        const CallContext& /*call*/) {
    wire::DescribeWorkerResponse response;
    response.set_backend(options_.backend);
    response.set_device(options_.device);
    response.set_memory_bytes_per_rank(node_.bytes_per_place().value());
    response.set_free_bytes(node_.free_bytes().value());
    response.set_rank_count_max(static_cast<std::int32_t>(node_.places()));
    response.mutable_comm_endpoint()->set_host(options_.comm.host);
    response.mutable_comm_endpoint()->set_port(options_.comm.port);
    for (const RankFact& fact : node_.facts()) {
      wire::Fact& out = *response.add_facts();
      out.set_name(fact.name);
      out.set_value(fact.value);
    }
    return response;
  }

  absl::StatusOr<wire::PreparePlanResponse> Prepare(const wire::PreparePlanRequest& request,
                                                    const CallContext& call) {
    KVASIR_ASSIGN_OR_RETURN(const PrepareSpec spec, ToPrepareSpec(request, node_.places()));
    KVASIR_ASSIGN_OR_RETURN(const PrepareReport report,
                            node_.Prepare(spec, std::chrono::steady_clock::now() + call.remaining()));
    return FromPrepareReport(spec, report, node_.facts());
  }

  absl::StatusOr<wire::CommitPlanResponse> Commit(const wire::CommitPlanRequest& request,
                                                  const CallContext& /*call*/) {
    KVASIR_RETURN_IF_ERROR(CheckDeployment(request.deployment()));
    KVASIR_ASSIGN_OR_RETURN(const PlanKey key, ToKey(request.epoch(), request.plan_id()));
    KVASIR_ASSIGN_OR_RETURN(
        const std::chrono::milliseconds drain,
        ToMilliseconds("drain_timeout", request.has_drain_timeout(), request.drain_timeout(), kDrain));
    KVASIR_ASSIGN_OR_RETURN(const DeploymentView view, node_.Commit(request.deployment(), key, drain));
    wire::CommitPlanResponse response;
    *response.mutable_state() = FromView(view);
    return response;
  }

  absl::StatusOr<wire::AbortPlanResponse> Abort(const wire::AbortPlanRequest& request,
                                                const CallContext& /*call*/) {
    KVASIR_RETURN_IF_ERROR(CheckDeployment(request.deployment()));
    KVASIR_ASSIGN_OR_RETURN(const PlanKey key, ToKey(request.epoch(), request.plan_id()));
    if (request.reason().size() > kAbortReasonBytesMax) {
      return FieldError(
          reason::kValueOutOfRange, "reason",
          absl::StrFormat("reason has %d bytes; at most %d", request.reason().size(), kAbortReasonBytesMax));
    }
    KVASIR_ASSIGN_OR_RETURN(const DeploymentView view,
                            node_.Abort(request.deployment(), key, request.reason()));
    wire::AbortPlanResponse response;
    *response.mutable_state() = FromView(view);
    return response;
  }

  absl::StatusOr<wire::ReleasePlanResponse> Release(const wire::ReleasePlanRequest& request,
                                                    const CallContext& /*call*/) {
    KVASIR_RETURN_IF_ERROR(CheckDeployment(request.deployment()));
    KVASIR_ASSIGN_OR_RETURN(const Epoch epoch, ToEpoch("epoch", request.epoch()));
    KVASIR_ASSIGN_OR_RETURN(
        const std::chrono::milliseconds drain,
        ToMilliseconds("drain_timeout", request.has_drain_timeout(), request.drain_timeout(), kDrain));
    KVASIR_ASSIGN_OR_RETURN(const DeploymentView view, node_.Release(request.deployment(), epoch, drain));
    wire::ReleasePlanResponse response;
    *response.mutable_state() = FromView(view);
    return response;
  }

  absl::StatusOr<wire::GetWorkerStateResponse> State(const wire::GetWorkerStateRequest& request,
                                                     const CallContext& /*call*/) {
    if (!request.deployment().empty()) KVASIR_RETURN_IF_ERROR(CheckDeployment(request.deployment()));
    wire::GetWorkerStateResponse response;
    for (const DeploymentView& view : node_.State(request.deployment()))
      *response.add_deployments() = FromView(view);
    if (!request.deployment().empty() && response.deployments().empty()) {
      response.add_deployments()->set_deployment(request.deployment());
    }
    return response;
  }

  absl::StatusOr<wire::ExecuteStepResponse> Execute(const wire::ExecuteStepRequest& request,
                                                    const CallContext& /*call*/) {
    KVASIR_RETURN_IF_ERROR(CheckDeployment(request.deployment()));
    const absl::StatusOr<StepPlan> step = ToStepPlan(request.step());
    if (!step.ok()) return WithinField("step", step.status());
    const absl::StatusOr<StepOutcome> outcome = node_.ExecuteStep(request.deployment(), *step);
    if (absl::IsInvalidArgument(outcome.status())) {
      return WithReason(reason::kValueOutOfRange, "", WithinField("step", outcome.status()));
    }
    KVASIR_RETURN_IF_ERROR(outcome.status());
    wire::ExecuteStepResponse response;
    *response.mutable_outcome() = FromStepOutcome(*outcome);
    return response;
  }

  WorkerNode& node_;
  const WorkerServiceOptions options_;
  DecodeStreams streams_;
  CallPool control_;
  CallPool prepare_;
  CallPool steps_;
};

WorkerService::WorkerService(WorkerNode& node, const WorkerServiceOptions& options)
    : impl_(std::make_unique<Impl>(node, options)) {}

WorkerService::~WorkerService() = default;

grpc::Service* WorkerService::service() { return impl_.get(); }

void WorkerService::Drain() { impl_->Drain(); }

}  // namespace kvasir
