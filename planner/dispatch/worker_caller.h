// The machine's calls, as the executor makes them. An interface, so that the dispatcher runs in tests without
// a network.
#ifndef KVASIR_PLANNER_DISPATCH_WORKER_CALLER_H_
#define KVASIR_PLANNER_DISPATCH_WORKER_CALLER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/dispatch/apply_machine.h"

namespace kvasir {

struct RankHome {
  std::int32_t rank = 0;
  std::string worker_address = {};
  std::string comm_host = {};
  std::int32_t comm_port = 0;
};

// One call with everything it needs.
struct WorkerCall {
  std::string deployment = {};
  WorkerTarget target = {};
  CallKind kind = CallKind::kQuery;
  Epoch epoch = {};
  ApplySpec spec = {};
  std::vector<RankHome> rank_map = {};  // every rank of the plan, ascending; kPrepare only
  ApplyMode mode = ApplyMode::kSideBySide;
  std::optional<PreflightSettings> preflight = {};
  std::int64_t drain_ms = 0;
  std::int64_t timeout_ms = 0;
};

struct WorkerReply {
  absl::Status status;
  WorkerObservation seen = {};
  std::string failure = {};                   // why the worker's plan ended by itself
  Epoch running_epoch = {};                   // 0: nothing runs
  planner::v1::WorkerPrepared prepared = {};  // of a successful kPrepare
};

class WorkerCaller {
 public:
  virtual ~WorkerCaller() = default;
  // Returns at once; `done` is called once, on any thread, within the timeout or soon after.
  virtual void Call(const WorkerCall& call, std::function<void(WorkerReply)> done) = 0;
  // Cancels what is out, and what is called later. Every `done` has been called on return.
  virtual void Stop() = 0;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_DISPATCH_WORKER_CALLER_H_
