// The processes of the soak: a planner and two workers, and the trained pair applied over both. Everything
// goes through the programs themselves, as a user would.
#ifndef KVASIR_TESTS_TOOLS_SOAK_SERVERS_H_
#define KVASIR_TESTS_TOOLS_SOAK_SERVERS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "tests/integration/cluster.h"

namespace kvasir::soak {

class SoakServers {
 public:
  // Starts them, plans and applies.
  static absl::StatusOr<std::unique_ptr<SoakServers>> Start();

  [[nodiscard]] testing::Server& planner() { return planner_; }
  [[nodiscard]] testing::WorkerServer& leader() { return workers_[0]; }
  [[nodiscard]] testing::WorkerServer& follower() { return workers_[1]; }
  // A connection of the caller's own, with windows of a few messages.
  [[nodiscard]] std::unique_ptr<worker::v1::WorkerService::Stub> OwnConnection() const;
  // That no sequence runs on any worker; waits a little for the last ones.
  [[nodiscard]] absl::Status CheckIdle();
  // Deletes the deployment, checks that the workers hold nothing, and stops all three: in time, exit code 0.
  [[nodiscard]] absl::Status Stop();
  // The ends of their logs.
  [[nodiscard]] std::string Logs() const;

 private:
  SoakServers() = default;
  absl::Status Apply();
  absl::StatusOr<std::string> Run(std::vector<std::string> command) const;

  testing::TempDir state_;
  testing::Server planner_;
  testing::WorkerServer workers_[2];
};

}  // namespace kvasir::soak

#endif  // KVASIR_TESTS_TOOLS_SOAK_SERVERS_H_
