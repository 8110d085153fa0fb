// A planner service on a real socket in this process, over workers without a network.
#ifndef KVASIR_TESTS_PLANNER_SERVICE_PLANNER_RIG_H_
#define KVASIR_TESTS_PLANNER_SERVICE_PLANNER_RIG_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/obs/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "planner/dispatch/dispatcher.h"
#include "planner/dispatch/file_store.h"
#include "planner/service/planner_service.h"
#include "tests/planner/dispatch/fake_workers.h"

namespace kvasir::testing {

class PlannerRig {
 public:
  PlannerRig();
  ~PlannerRig();

  [[nodiscard]] planner::v1::PlannerService::Stub& stub() { return *stub_; }

  // A unary method of the stub, with a minute for it.
  template <class Method, class Request, class Response>
  absl::Status Call(Method method, const Request& request, Response& response) {
    grpc::ClientContext context;
    SetTimeout(context, std::chrono::seconds(60));
    return FromPeer((stub().*method)(&context, request, &response), "planner");
  }

  [[nodiscard]] FakeWorkers& workers() { return workers_; }
  [[nodiscard]] Dispatcher& dispatcher() { return *dispatcher_; }

  // Sends bytes as they are to /kvasir.planner.v1.PlannerService/<method>; the status of the answer.
  [[nodiscard]] absl::Status Send(const std::string& method, const std::string& bytes,
                                  std::chrono::milliseconds timeout = std::chrono::seconds(60));

 private:
  const std::filesystem::path directory_;
  const SystemClock clock_;
  FakeWorkers workers_;
  std::unique_ptr<FileStore> store_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<PlannerServiceImpl> service_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<planner::v1::PlannerService::Stub> stub_;
};

// The demo's pair on two ranks, DCP 2, in 16 MiB: fits.
[[nodiscard]] planner::v1::CreatePlanRequest GoodPlanRequest();
// Two latent layers as explicit specs on two ranks: fits.
[[nodiscard]] planner::v1::CreatePlanRequest GoodLayersRequest();
// The plan of GoodPlanRequest on node-a:1 and node-b:1.
[[nodiscard]] planner::v1::ApplyPlanRequest GoodApplyRequest();

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_PLANNER_SERVICE_PLANNER_RIG_H_
