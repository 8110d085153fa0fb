// The command line of kvasir-worker as a value.
#ifndef KVASIR_WORKER_SERVICE_WORKER_FLAGS_H_
#define KVASIR_WORKER_SERVICE_WORKER_FLAGS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/units.h"
#include "worker/comm/facts.h"
#include "worker/service/fault_points.h"

namespace kvasir {

struct WorkerFlags {
  std::string listen = "127.0.0.1:7451";
  std::string comm_listen;  // empty: the host of `listen`, any port
  std::string advertise;    // host under which other workers reach this one; empty: the host of `comm_listen`
  std::int64_t ranks = 1;
  std::string backend = "auto";
  std::string checkpoint_root;  // checkpoints are read from below it; empty: none are
  Bytes memory;                 // per rank; 0: three quarters of the machine's, shared by the ranks
  bool adaptive_verification = false;
  bool insecure = false;
  bool reflection = false;
  bool help = false;
  bool version = false;
  std::chrono::milliseconds drain{10'000};
  RankFacts facts;  // test only: told to the other ranks as if the build said so
  FaultPoints faults;
};

// InvalidArgument names the flag, its value and what is accepted. Flags are --name=value or --name value.
[[nodiscard]] absl::StatusOr<WorkerFlags> ParseWorkerFlags(const std::vector<std::string>& arguments);

// "2GiB", "512MiB", "4096": bytes, or KiB, MiB, GiB, TiB.
[[nodiscard]] absl::StatusOr<Bytes> ParseBytes(const std::string& text);

// For --help: one line per flag, and the exit codes.
[[nodiscard]] std::string WorkerUsage();

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_WORKER_FLAGS_H_
