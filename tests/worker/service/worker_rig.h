// Workers of one deployment in one process: real nodes, real engines on the CPU, real gRPC on loopback, small
// models. The test plays the planner.
#ifndef KVASIR_TESTS_WORKER_SERVICE_WORKER_RIG_H_
#define KVASIR_TESTS_WORKER_SERVICE_WORKER_RIG_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/typed_error.h"
#include "common/obs/clock.h"
#include "common/rpc/server.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "tests/testing/engine_plan.h"
#include "worker/comm/comm_listener.h"
#include "worker/service/decode_stream.h"
#include "worker/service/worker_node.h"
#include "worker/service/worker_service.h"

namespace kvasir::testing {

namespace wire = worker::v1;

struct RigOptions {
  std::size_t workers = 2;
  std::size_t ranks_per_worker = 1;
  Bytes memory{std::int64_t{64} << 20};  // per rank
  std::size_t stream_queue_max = kStreamQueueMax;
  std::string checkpoint_root = {};
  std::function<RankFacts(std::size_t worker)> extra_facts = [](std::size_t) { return RankFacts(); };
};

struct RigWorker {
  std::unique_ptr<CommListener> listener;
  std::unique_ptr<WorkerNode> node;
  std::unique_ptr<WorkerService> service;
  std::unique_ptr<RpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<wire::WorkerService::Stub> stub;

  [[nodiscard]] std::string address() const { return AddressText(server->address()); }
  // Nothing is allocated.
  [[nodiscard]] bool IsEmpty() const;
  // Ends the process's part of the deployment as SIGKILL would: connections close, nobody says why.
  void Kill();
};

class WorkerRig {
 public:
  explicit WorkerRig(const RigOptions& options = {});
  ~WorkerRig();

  [[nodiscard]] RigWorker& at(std::size_t worker) { return workers_[worker]; }
  [[nodiscard]] std::size_t size() const { return workers_.size(); }

  // Ranks in order over the workers; a plan whose tp is workers * ranks_per_worker.
  [[nodiscard]] wire::PreparePlanRequest PrepareRequest(std::size_t worker, const Plan& plan,
                                                        std::int64_t epoch) const;
  [[nodiscard]] wire::CommitPlanRequest CommitRequest(const Plan& plan, std::int64_t epoch) const;

  // On all workers at once; each one's answer.
  std::vector<absl::Status> PrepareAll(
      const Plan& plan, std::int64_t epoch,
      const std::function<void(wire::PreparePlanRequest&)>& change = nullptr);
  // Rank 0's worker last; the first error.
  absl::Status CommitAll(const Plan& plan, std::int64_t epoch);
  // PrepareAll and CommitAll.
  absl::Status Apply(const Plan& plan, std::int64_t epoch);
  absl::Status ReleaseAll(std::int64_t epoch);

  // Waits until every worker's memory is free again.
  [[nodiscard]] bool BecomesEmpty();

 private:
  const RigOptions options_;
  SystemClock clock_;
  std::vector<RigWorker> workers_;
};

inline constexpr char kDeployment[] = "test";

// The plan of `ranks` ranks that the tests run, DCP as wide as TP.
[[nodiscard]] Plan RigPlan(std::int64_t ranks, std::int64_t draft_tokens = 3);

// One unary call; errors as a client of ours reads them.
template <class Request, class Response>
absl::StatusOr<Response> Call(wire::WorkerService::Stub& stub,
                              grpc::Status (wire::WorkerService::Stub::*method)(grpc::ClientContext*,
                                                                                const Request&, Response*),
                              const Request& request,
                              std::chrono::milliseconds timeout = std::chrono::seconds(60));

absl::Status StatusOfCall(const grpc::Status& status);

template <class Request, class Response>
absl::StatusOr<Response> Call(wire::WorkerService::Stub& stub,
                              grpc::Status (wire::WorkerService::Stub::*method)(grpc::ClientContext*,
                                                                                const Request&, Response*),
                              const Request& request, std::chrono::milliseconds timeout) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  Response response;
  absl::Status status = StatusOfCall((stub.*method)(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

// What became of one request of a Decode stream.
struct Decoded {
  bool joined = false;
  std::int64_t epoch = 0;
  std::uint64_t seed = 0;
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  bool finished = false;
  wire::FinishedEvent finish;
  bool failed = false;
  wire::ErrorEvent error;
};

struct DecodeResult {
  std::map<std::int64_t, Decoded> requests;  // by tag
  absl::Status status;                       // of the stream
};

[[nodiscard]] wire::DecodeRequest JoinMessage(std::int64_t tag, const std::vector<std::int32_t>& prompt,
                                              std::int64_t max_tokens, bool speculate);
// Sends all messages, closes its side, reads to the end.
[[nodiscard]] DecodeResult DecodeAllOf(wire::WorkerService::Stub& stub,
                                       const std::vector<wire::DecodeRequest>& messages,
                                       std::chrono::milliseconds timeout = std::chrono::seconds(60));
// A stub of its own connection with a window of a few messages: what the client does not read stays on the
// server.
[[nodiscard]] std::unique_ptr<wire::WorkerService::Stub> NarrowStub(const std::string& address);
// Adds one response.
void Take(const wire::DecodeResponse& response, DecodeResult& result);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_WORKER_SERVICE_WORKER_RIG_H_
