// Runs apply machines: one thread takes events in order and carries out the machines' actions. Everything
// that may block or fail is behind an interface, so that tests own time, network and store.
#ifndef KVASIR_PLANNER_DISPATCH_DISPATCHER_H_
#define KVASIR_PLANNER_DISPATCH_DISPATCHER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/obs/clock.h"
#include "planner/dispatch/apply_machine.h"
#include "planner/dispatch/deployment_store.h"
#include "planner/dispatch/worker_caller.h"

namespace kvasir {

struct ApplyProgress {
  std::int64_t elapsed_ms = 0;
  Epoch epoch = {};
  ReportKind kind = ReportKind::kPhase;
  ApplyPhase phase = ApplyPhase::kIdle;
  std::string worker_address = {};            // kPrepared, kCommitted
  planner::v1::WorkerPrepared prepared = {};  // kPrepared
};

struct DeploymentView {
  DeploymentRecord record = {};
  ApplyPhase phase = ApplyPhase::kIdle;  // of the machine that runs now
};

struct ApplyEnd {
  absl::Status status = {};
  DeploymentView view = {};
  std::vector<std::string> unreachable = {};  // workers that were given up at the end
  std::int64_t elapsed_ms = 0;
};

// Called on the dispatcher's thread: must be quick and must not call the dispatcher.
struct ApplyListener {
  std::function<void(const ApplyProgress&)> progress;
  std::function<void(const ApplyEnd&)> done;  // once
};

class Dispatcher {
 public:
  // All outlive the dispatcher, which stops `caller` when it stops itself.
  Dispatcher(DeploymentStore& store, WorkerCaller& caller, const Clock& clock);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Takes up what a stopped planner left unfinished. The store's error where a record cannot be read.
  absl::Status Recover();

  // Starts an apply; its outcome goes to the listener. With the request_id of the apply that runs, or of the
  // last one that ended well, joins that. Aborted (APPLY_IN_PROGRESS) while another one runs.
  absl::Status Apply(const std::string& name, const StartApplyEvent& event,
                     const std::optional<PreflightSettings>& preflight, ApplyListener listener);
  // NotFound (DEPLOYMENT_UNKNOWN), Aborted (APPLY_IN_PROGRESS).
  absl::Status Delete(const std::string& name, std::int64_t drain_ms, ApplyListener listener);
  // NotFound (DEPLOYMENT_UNKNOWN).
  absl::StatusOr<DeploymentView> Get(const std::string& name);

  // Waits until no machine runs; false when `timeout_ms` passed before.
  bool WaitIdle(std::int64_t timeout_ms);
  // Ends the thread. Machines that run stop where they are: the store has how far they came. Their listeners
  // get Unavailable (SERVER_STOPPING). Idempotent.
  void Stop();

 private:
  static constexpr std::int64_t kTickMs = 200;

  struct Run {
    std::int64_t id = 0;
    ApplyState state;
    ApplyMode mode = ApplyMode::kSideBySide;
    std::optional<PreflightSettings> preflight;
    std::string request_id;
    std::int64_t started_ms = 0;
    std::vector<ApplyListener> listeners;
    std::map<std::size_t, planner::v1::WorkerPrepared> prepared;  // by worker, of the last kPrepare
  };
  struct Item {
    std::string name;
    std::int64_t run = 0;
    ApplyEvent event;
    std::optional<std::pair<std::size_t, planner::v1::WorkerPrepared>> prepared;
  };
  struct Timer {
    std::string name;
    std::int64_t run = 0;
    CallAction action;
    WorkerCall call;
  };

  void Loop();
  // Sleeps until something came in, `wait_ms` passed or Stop was called.
  std::optional<Item> NextItem(std::int64_t wait_ms);
  void Put(Item item);
  bool stopping();
  void Take(Item item);
  void Step(const std::string& name, Run& run, const ApplyEvent& event);
  void CarryOut(const std::string& name, Run& run, const PersistAction& action);
  void CarryOut(const std::string& name, Run& run, const CallAction& action);
  void CarryOut(const std::string& name, Run& run, const ReportAction& action);
  void CarryOut(const std::string& name, Run& run, const FinishAction& action);
  void SendCall(const Timer& timer);
  void FireTimers(std::int64_t now_ms);
  void Tick(std::int64_t now_ms);
  WorkerCall MakeCall(const std::string& name, const Run& run, const CallAction& action) const;
  // With mutex_ held.
  absl::StatusOr<DeploymentRecord> LoadIdle(const std::string& name);
  Run& StartRun(const std::string& name, const DeploymentRecord& record, const ApplyEvent& event);
  absl::Status InProgress(const std::string& name) const;

  DeploymentStore& store_;
  WorkerCaller& caller_;
  const Clock& clock_;

  // Answers come in under a lock of their own: one may come from within the call that asks for it.
  std::mutex inbox_mutex_;
  std::condition_variable inbox_changed_;
  std::deque<Item> inbox_;
  bool stopping_ = false;

  std::mutex mutex_;
  std::condition_variable idle_;
  std::int64_t runs_started_ = 0;
  std::int64_t next_tick_ms_ = 0;
  std::map<std::string, Run> runs_;
  std::map<std::string, std::pair<std::string, ApplyEnd>>
      last_;  // request_id and outcome of the last good apply
  std::multimap<std::int64_t, Timer> timers_;
  std::thread thread_;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_DISPATCH_DISPATCHER_H_
