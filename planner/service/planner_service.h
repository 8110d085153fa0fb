// PlannerService on the wire: one short method per RPC. What it answers is in answers.h and planner/dispatch.
#ifndef KVASIR_PLANNER_SERVICE_PLANNER_SERVICE_H_
#define KVASIR_PLANNER_SERVICE_PLANNER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>

#include "common/rpc/call.h"
#include "common/rpc/call_pool.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "planner/dispatch/dispatcher.h"
#include "planner/dispatch/worker_caller.h"

namespace kvasir {

// All methods raw: common/rpc/call.h says why.
using RawDeployments = planner::v1::PlannerService::WithRawCallbackMethod_ApplyPlan<
    planner::v1::PlannerService::WithRawCallbackMethod_GetDeployment<
        planner::v1::PlannerService::WithRawCallbackMethod_DeleteDeployment<
            planner::v1::PlannerService::Service>>>;
using RawQuestions = planner::v1::PlannerService::WithRawCallbackMethod_ComparePlans<
    planner::v1::PlannerService::WithRawCallbackMethod_SolvePlan<
        planner::v1::PlannerService::WithRawCallbackMethod_SweepPlans<
            planner::v1::PlannerService::WithRawCallbackMethod_CompareWithEngine<RawDeployments>>>>;
using RawPlannerService = planner::v1::PlannerService::WithRawCallbackMethod_CreatePlan<
    planner::v1::PlannerService::WithRawCallbackMethod_ValidateSpecs<
        planner::v1::PlannerService::WithRawCallbackMethod_ExplainPlan<RawQuestions>>>;

class PlannerServiceImpl final : public RawPlannerService {
 public:
  // Both outlive the service. `threads` calls are answered at a time, and half as many sweeps and searches
  // beside them: those take seconds, and a plan must not wait for them.
  PlannerServiceImpl(Dispatcher& dispatcher, WorkerCaller& caller, std::size_t threads);

  static const char* Name() { return planner::v1::PlannerService::service_full_name(); }

  grpc::ServerUnaryReactor* CreatePlan(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ValidateSpecs(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ExplainPlan(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ComparePlans(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CompareWithEngine(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SolvePlan(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* SweepPlans(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ApplyPlan(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* GetDeployment(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DeleteDeployment(grpc::CallbackServerContext* context,
                                             const grpc::ByteBuffer* request,
                                             grpc::ByteBuffer* response) override;

 private:
  absl::Status StartApply(const grpc::ByteBuffer& bytes, const ApplyListener& listener,
                          const std::shared_ptr<std::int64_t>& planned_graphs);
  absl::StatusOr<planner::v1::GetDeploymentResponse> Get(const planner::v1::GetDeploymentRequest& request,
                                                         const CallContext& call);
  absl::StatusOr<planner::v1::DeleteDeploymentResponse> Delete(
      const planner::v1::DeleteDeploymentRequest& request, const CallContext& call);

  Dispatcher& dispatcher_;
  WorkerCaller& caller_;
  CallPool pool_;
  CallPool sweeps_;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_PLANNER_SERVICE_H_
