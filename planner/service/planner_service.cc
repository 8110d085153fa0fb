#include "planner/service/planner_service.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/rpc/progress_stream.h"
#include "planner/service/answer_questions.h"
#include "planner/service/answers.h"
#include "planner/service/check_field.h"
#include "planner/service/compare_with_engine.h"
#include "planner/service/convert_apply.h"
#include "planner/service/watch_workers.h"

namespace kvasir {
namespace {

namespace wire = ::kvasir::planner::v1;

constexpr std::chrono::milliseconds kWatchTimeout{2'000};
constexpr DurationRange kDrainRange{.min_ms = 0, .max_ms = 3'600'000, .default_ms = 30'000};

// A question that needs nothing but its request.
template <class Request, class Response>
UnaryHandler<Request, Response> Pure(absl::StatusOr<Response> (*answer)(const Request&)) {
  return [answer](const Request& request, const CallContext& /*call*/) { return answer(request); };
}

// A question that takes many plans: it ends with its call, and half of an answer is none.
template <class Request, class Response>
UnaryHandler<Request, Response> WhileAlive(absl::StatusOr<Response> (*answer)(const Request&, const GoOn&)) {
  return [answer](const Request& request, const CallContext& call) -> absl::StatusOr<Response> {
    absl::StatusOr<Response> response = answer(request, [&call] { return call.CheckAlive().ok(); });
    KVASIR_RETURN_IF_ERROR(call.CheckAlive());
    return response;
  };
}

}  // namespace

PlannerServiceImpl::PlannerServiceImpl(Dispatcher& dispatcher, WorkerCaller& caller, std::size_t threads)
    : dispatcher_(dispatcher), caller_(caller), pool_(threads), sweeps_((threads + 1) / 2) {}

grpc::ServerUnaryReactor* PlannerServiceImpl::CreatePlan(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request,
                                                         grpc::ByteBuffer* response) {
  return ServeUnary<wire::CreatePlanRequest, wire::CreatePlanResponse>(context, request, response, pool_,
                                                                       Pure(AnswerCreatePlan));
}

grpc::ServerUnaryReactor* PlannerServiceImpl::ValidateSpecs(grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request,
                                                            grpc::ByteBuffer* response) {
  return ServeUnary<wire::ValidateSpecsRequest, wire::ValidateSpecsResponse>(
      context, request, response, pool_, Pure(AnswerValidateSpecs));
}

grpc::ServerUnaryReactor* PlannerServiceImpl::ExplainPlan(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request,
                                                          grpc::ByteBuffer* response) {
  return ServeUnary<wire::ExplainPlanRequest, wire::ExplainPlanResponse>(context, request, response, pool_,
                                                                         WhileAlive(AnswerExplainPlan));
}

grpc::ServerUnaryReactor* PlannerServiceImpl::ComparePlans(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request,
                                                           grpc::ByteBuffer* response) {
  return ServeUnary<wire::ComparePlansRequest, wire::ComparePlansResponse>(context, request, response, pool_,
                                                                           Pure(AnswerComparePlans));
}

grpc::ServerUnaryReactor* PlannerServiceImpl::CompareWithEngine(grpc::CallbackServerContext* context,
                                                                const grpc::ByteBuffer* request,
                                                                grpc::ByteBuffer* response) {
  return ServeUnary<wire::CompareWithEngineRequest, wire::CompareWithEngineResponse>(
      context, request, response, pool_, WhileAlive(AnswerCompareWithEngine));
}

grpc::ServerUnaryReactor* PlannerServiceImpl::SolvePlan(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  return ServeUnary<wire::SolvePlanRequest, wire::SolvePlanResponse>(context, request, response, sweeps_,
                                                                     WhileAlive(AnswerSolvePlan));
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* PlannerServiceImpl::SweepPlans(
    grpc::CallbackServerContext* /*context*/, const grpc::ByteBuffer* request) {
  auto stream = ProgressStream<wire::SweepPlansResponse>::Make();
  const bool accepted = sweeps_.Run([stream, bytes = *request] {
    const absl::StatusOr<wire::SweepPlansRequest> message = ParseMessage<wire::SweepPlansRequest>(bytes);
    if (!message.ok()) return stream->End(message.status());
    // gRPC cancels a stream whose deadline has passed, so this ends with the call.
    stream->End(AnswerSweepPlans(
        *message, [&stream] { return !stream->ended(); },
        [&stream](const wire::SweepPlansResponse& part) { stream->Push(part); }));
  });
  if (!accepted) {
    stream->End(ServerBusy());
  }
  return stream.get();
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* PlannerServiceImpl::ApplyPlan(
    grpc::CallbackServerContext* /*context*/, const grpc::ByteBuffer* request) {
  auto stream = ProgressStream<wire::ApplyPlanResponse>::Make();
  auto planned_graphs = std::make_shared<std::int64_t>(0);  // known after parsing, read by the listener
  const ApplyListener listener{.progress =
                                   [stream, planned_graphs](const ApplyProgress& progress) {
                                     stream->Push(ProgressToProto(progress, *planned_graphs));
                                   },
                               .done =
                                   [stream](const ApplyEnd& end) {
                                     if (end.status.ok()) {
                                       stream->Push(DoneToProto(end));
                                     }
                                     stream->End(end.status);
                                   }};
  // The bytes are shared with gRPC by reference count; its own buffer need not outlive this call.
  const bool accepted = pool_.Run([this, stream, listener, planned_graphs, bytes = *request] {
    if (absl::Status started = StartApply(bytes, listener, planned_graphs); !started.ok()) {
      stream->End(started);
    }
  });
  if (!accepted) {
    stream->End(ServerBusy());
  }
  return stream.get();
}

absl::Status PlannerServiceImpl::StartApply(const grpc::ByteBuffer& bytes, const ApplyListener& listener,
                                            const std::shared_ptr<std::int64_t>& planned_graphs) {
  KVASIR_ASSIGN_OR_RETURN(const wire::ApplyPlanRequest request, ParseMessage<wire::ApplyPlanRequest>(bytes));
  KVASIR_ASSIGN_OR_RETURN(const ApplyTask task, ApplyFromProto(request));
  *planned_graphs = task.planned_graphs;
  return dispatcher_.Apply(task.deployment, task.start, task.preflight, listener);
}

grpc::ServerUnaryReactor* PlannerServiceImpl::GetDeployment(grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request,
                                                            grpc::ByteBuffer* response) {
  return ServeUnary<wire::GetDeploymentRequest, wire::GetDeploymentResponse>(
      context, request, response, pool_,
      [this](const auto& message, const auto& call) { return Get(message, call); });
}

absl::StatusOr<wire::GetDeploymentResponse> PlannerServiceImpl::Get(const wire::GetDeploymentRequest& request,
                                                                    const CallContext& call) {
  KVASIR_RETURN_IF_ERROR(CheckDeploymentName("deployment", request.deployment()));
  KVASIR_ASSIGN_OR_RETURN(const DeploymentView view, dispatcher_.Get(request.deployment()));
  wire::GetDeploymentResponse response;
  *response.mutable_deployment() = DeploymentToProto(view);
  if (view.phase != ApplyPhase::kIdle || !view.record.serving.has_value()) {
    return response;
  }
  // Half of what is left of the caller's time, so that the answer arrives even when a worker does not.
  const auto timeout = std::min(kWatchTimeout, call.remaining() / 2);
  const absl::Status serving = CheckServing(caller_, request.deployment(), *view.record.serving, timeout);
  if (!serving.ok()) {
    const TypedError error = ErrorOf(serving);
    response.mutable_deployment()->set_state(wire::DEPLOYMENT_STATE_FAILED);
    response.mutable_deployment()->mutable_last_error()->set_code(static_cast<std::int32_t>(error.code));
    response.mutable_deployment()->mutable_last_error()->set_reason(error.reason);
    response.mutable_deployment()->mutable_last_error()->set_message(error.message);
  }
  return response;
}

grpc::ServerUnaryReactor* PlannerServiceImpl::DeleteDeployment(grpc::CallbackServerContext* context,
                                                               const grpc::ByteBuffer* request,
                                                               grpc::ByteBuffer* response) {
  return ServeUnary<wire::DeleteDeploymentRequest, wire::DeleteDeploymentResponse>(
      context, request, response, pool_,
      [this](const auto& message, const auto& call) { return Delete(message, call); });
}

absl::StatusOr<wire::DeleteDeploymentResponse> PlannerServiceImpl::Delete(
    const wire::DeleteDeploymentRequest& request, const CallContext& call) {
  KVASIR_RETURN_IF_ERROR(CheckDeploymentName("deployment", request.deployment()));
  KVASIR_ASSIGN_OR_RETURN(
      const std::int64_t drain_ms,
      DurationMs("drain_timeout", request.has_drain_timeout(), request.drain_timeout(), kDrainRange));
  auto promise =
      std::make_shared<std::promise<ApplyEnd>>();  // shared: the end may come after this call has given up
  std::future<ApplyEnd> future = promise->get_future();
  KVASIR_RETURN_IF_ERROR(dispatcher_.Delete(
      request.deployment(), drain_ms,
      {.progress = nullptr, .done = [promise](const ApplyEnd& end) { promise->set_value(end); }}));
  if (future.wait_until(call.deadline()) != std::future_status::ready) {
    return MakeError(
        {.code = absl::StatusCode::kDeadlineExceeded,
         .reason = reason::kDeadlineExpired,
         .message = "the deadline passed; the delete goes on, GetDeployment shows how far it is"});
  }
  const ApplyEnd end = future.get();
  KVASIR_RETURN_IF_ERROR(end.status);
  wire::DeleteDeploymentResponse response;
  response.set_epoch(end.view.record.max_epoch.value());
  response.mutable_unreachable_workers()->Add(end.unreachable.begin(), end.unreachable.end());
  return response;
}

}  // namespace kvasir
