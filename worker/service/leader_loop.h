// Rank 0's loop of one plan: the one thread that owns the scheduler. It takes requests, decides each step,
// sends it to the other workers, runs it on the local ranks, and hands tokens to the clients' sinks. Clients
// never hold it up. Requests join, are cancelled and reach their deadlines between two steps; whichever way
// one ends, its blocks are free before the next step.
#ifndef KVASIR_WORKER_SERVICE_LEADER_LOOP_H_
#define KVASIR_WORKER_SERVICE_LEADER_LOOP_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/scheduler.h"
#include "worker/engine/worker_machine.h"
#include "worker/service/decode_sink.h"
#include "worker/service/step_peer.h"

namespace kvasir {

inline constexpr std::size_t kWaitingMax = 1024;  // requests that wait for the loop or for room

// How long a request may take to be admitted, and in all.
struct JoinTerms {
  bool wait = false;                    // for room, in order of arrival; false: be refused at once
  std::chrono::nanoseconds timeout{0};  // from Join to the last token; 0: none
};

struct LeaderLoopOptions {
  PlanKey key;
  std::unique_ptr<Scheduler> scheduler;
  bool drafts = false;  // the plan has a draft
  // Steps learn what their rows cost, and verify no more drafted tokens than pay; where the draft has a
  // confidence head (worker/engine/choose_verify_rows.h).
  bool adaptive_verification = false;
  std::vector<std::unique_ptr<StepPeer>> peers;
  std::chrono::milliseconds step_timeout{30'000};  // for a peer to answer
  // The local ranks: runs a step, and makes a running one end soon. Outlive the loop.
  std::function<absl::StatusOr<StepOutcome>(const StepPlan&)> execute;
  std::function<void(const std::string& reason)> abort;
  // Called on the loop's thread, at most once each.
  std::function<void()> on_drained;                    // after Drain, when the last request has ended
  std::function<void(const absl::Status&)> on_failed;  // a step failed: nothing runs any more
  std::size_t waiting_max = kWaitingMax;
  // A monotonic clock, called on any thread.
  std::function<std::chrono::nanoseconds()> now = [] {
    return std::chrono::steady_clock::now().time_since_epoch();
  };
};

class LeaderLoop {
 public:
  explicit LeaderLoop(LeaderLoopOptions options);
  // As Stop(PLAN_RETIRED).
  ~LeaderLoop();
  LeaderLoop(const LeaderLoop&) = delete;
  LeaderLoop& operator=(const LeaderLoop&) = delete;

  // All return at once. Admission is answered through the sink, by RequestJoined or a status; nobody is
  // admitted before those who wait. The status here is PLAN_RETIRED, or the failure, where the loop takes no
  // requests any more, InvalidArgument for a request that could never run, and SERVER_BUSY where
  // waiting_max requests wait.
  absl::Status Join(std::int64_t tag, SequenceRequest request, std::shared_ptr<DecodeSink> sink,
                    const JoinTerms& terms = {});
  // The request ends with RequestFinished{kCancelled}, unless it has ended already.
  void Cancel(std::int64_t tag, const std::shared_ptr<DecodeSink>& sink);
  // The client is gone.
  void Drop(const std::shared_ptr<DecodeSink>& sink);
  // No new requests; those that run go on, those that wait end with PLAN_RETIRED.
  void Drain();
  // Ends everything with `cause`, and waits for the thread. A step in flight is aborted. Idempotent. With
  // `fail_streams` the sinks' streams end too.
  void Stop(const absl::Status& cause, bool fail_streams);

  [[nodiscard]] std::int64_t running() const;

 private:
  struct JoinCommand {
    std::int64_t tag = 0;
    SequenceRequest request;
    std::shared_ptr<DecodeSink> sink;
    JoinTerms terms;
    std::chrono::nanoseconds joined_at{0};
    [[nodiscard]] bool ExpiredAt(std::chrono::nanoseconds now) const {
      return terms.timeout.count() > 0 && now - joined_at >= terms.timeout;
    }
  };
  struct CancelCommand {
    std::optional<std::int64_t> tag;  // nullopt: all of the sink's
    std::shared_ptr<DecodeSink> sink;
  };
  using Command = std::variant<JoinCommand, CancelCommand>;
  struct Session {
    JoinCommand join;  // its prompt is the scheduler's, and empty here
    RequestFinished totals;
  };

  void Loop();
  // False: the loop is to end.
  bool TakeCommands();
  void Do(JoinCommand& command);
  void Do(const CancelCommand& command);
  // False: there is no room now, and the request may wait.
  bool Admit(JoinCommand& command);
  void AdmitWaiting();
  void RefuseWaiting(const absl::Status& cause);
  void ExpireLate();
  void CountJoining();
  void DropSlow();
  void RunStep(const StepPlan& step);
  void Learn(const StepOutcome& outcome, std::chrono::nanoseconds took);
  void Report(const StepPlan& step, const std::vector<SequenceProgress>& progress,
              std::chrono::nanoseconds took);
  void ReportOne(const StepPlan& step, const SequenceProgress& progress, std::chrono::nanoseconds took);
  void FailSequences(const absl::Status& cause);
  void EndAll(const absl::Status& cause, bool fail_streams);
  void Send(std::int64_t tag, const std::shared_ptr<DecodeSink>& sink, decltype(DecodeEvent::what) what);

  LeaderLoopOptions options_;
  // The thread's own.
  std::map<SequenceId, Session> sessions_;
  std::deque<JoinCommand> waiting_;  // for room, in order of arrival
  StepCostEstimate costs_;
  std::size_t taken_ = 0;  // of joining_, those that the thread has seen
  std::vector<std::shared_ptr<DecodeSink>>
      slow_;  // sinks that refused an event; dropped before the next step

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> commands_;
  std::size_t joining_ = 0;  // joins among commands_, and taken_
  absl::Status closed_;      // not OK: no new requests, and why
  bool draining_ = false;
  std::optional<std::pair<absl::Status, bool>> stop_;
  std::int64_t running_ = 0;
  std::mutex join_mutex_;
  std::thread thread_;
};

// PLAN_RETIRED: the plan was replaced or released.
[[nodiscard]] absl::Status PlanRetired(const PlanKey& key, const std::string& why);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_LEADER_LOOP_H_
