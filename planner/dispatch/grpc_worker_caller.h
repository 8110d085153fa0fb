// The machine's calls over gRPC.
#ifndef KVASIR_PLANNER_DISPATCH_GRPC_WORKER_CALLER_H_
#define KVASIR_PLANNER_DISPATCH_GRPC_WORKER_CALLER_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "planner/dispatch/worker_caller.h"

namespace kvasir {

class GrpcWorkerCaller final : public WorkerCaller {
 public:
  GrpcWorkerCaller() = default;
  ~GrpcWorkerCaller() override;

  void Call(const WorkerCall& call, std::function<void(WorkerReply)> done) override;
  void Stop() override;

 private:
  template <class Request, class Response>
  struct Flight;

  std::shared_ptr<worker::v1::WorkerService::Stub> StubOf(const std::string& address);
  void Query(const WorkerCall& call, std::function<void(WorkerReply)> done);
  // Sends with `method` of the stub's async interface; `take` turns the response into the reply.
  template <class Request, class Response, class Method, class Take>
  void Send(const WorkerCall& call, Request request, Method method, Take take,
            std::function<void(WorkerReply)> done);

  std::mutex mutex_;
  std::condition_variable landed_;
  bool stopping_ = false;
  std::map<std::string, std::shared_ptr<worker::v1::WorkerService::Stub>> stubs_;
  std::set<grpc::ClientContext*> flying_;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_DISPATCH_GRPC_WORKER_CALLER_H_
