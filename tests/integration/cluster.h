// One planner and some workers as real processes on loopback, each on a port of the system's choice.
#ifndef KVASIR_TESTS_INTEGRATION_CLUSTER_H_
#define KVASIR_TESTS_INTEGRATION_CLUSTER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "tests/testing/process.h"

namespace kvasir::testing {

// A server that said where it listens.
struct Server {
  std::unique_ptr<Process> process;
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
};

// Fails the test if the program does not come up.
[[nodiscard]] Server StartServer(const std::string& program, std::vector<std::string> flags);

struct WorkerServer : Server {
  std::unique_ptr<worker::v1::WorkerService::Stub> stub;
};
// With 64 MiB per rank.
[[nodiscard]] WorkerServer StartWorker(const std::vector<std::string>& flags = {});

struct PlannerServer : Server {
  std::unique_ptr<planner::v1::PlannerService::Stub> stub;
};
[[nodiscard]] PlannerServer StartPlanner(const std::string& state_dir);

// The demo's target and draft on two ranks, DCP 2.
[[nodiscard]] absl::StatusOr<planner::v1::ApplyPlanRequest> PlanDemoPair(
    planner::v1::PlannerService::Stub& planner);

// Rank i on workers[i]. The stream's events, or its error.
struct ApplyOutcome {
  std::vector<planner::v1::ApplyPlanResponse> events;
  absl::Status status;
};
[[nodiscard]] ApplyOutcome Apply(planner::v1::PlannerService::Stub& planner,
                                 planner::v1::ApplyPlanRequest request,
                                 const std::vector<std::string>& workers,
                                 std::chrono::milliseconds timeout = std::chrono::seconds(120));

// Tokens by tag of one Decode stream that carries all prompts at once.
struct StreamOutcome {
  std::map<std::int64_t, std::vector<std::int32_t>> tokens;
  std::map<std::int64_t, worker::v1::FinishedEvent> finished;
  std::map<std::int64_t, worker::v1::ErrorEvent> errors;
  absl::Status status;
};
[[nodiscard]] StreamOutcome DecodePrompts(worker::v1::WorkerService::Stub& leader,
                                          const std::vector<std::vector<std::int32_t>>& prompts,
                                          std::int64_t max_tokens, bool speculate,
                                          std::chrono::milliseconds timeout = std::chrono::seconds(120));

// Polls until the worker holds nothing: all its memory is free and no plan is in its state.
[[nodiscard]] bool BecomesEmpty(WorkerServer& worker, std::chrono::milliseconds timeout);

// A fresh folder under the test's temporary directory, removed with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_INTEGRATION_CLUSTER_H_
