// One application of StepApply, shared by the files that implement its phases. Not for other folders.
#ifndef KVASIR_PLANNER_DISPATCH_APPLY_STEP_H_
#define KVASIR_PLANNER_DISPATCH_APPLY_STEP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/dispatch/apply_machine.h"

namespace kvasir {

inline constexpr int kTriesMax = 3;                    // of one call in one phase
inline constexpr int kTriesCommittedMax = 10;          // where giving up would retire what may serve
inline constexpr std::int64_t kRetryDelayMs = 200;     // before a call is tried again
inline constexpr std::int64_t kPollDelayMs = 100;      // while an old plan drains
inline constexpr std::int64_t kControlMs = 5'000;      // for a call that waits for nothing
inline constexpr std::int64_t kDrainSlackMs = 10'000;  // beyond the drain deadline, to free memory

class ApplyStepper {
 public:
  ApplyStepper(ApplyState state, std::int64_t now_ms) : s_(std::move(state)), now_ms_(now_ms) {}

  void On(const StartApplyEvent& event);
  void On(const StartDeleteEvent& event);
  void On(const RecoverEvent& event);
  void On(const PersistedEvent& event);
  void On(const ReplyEvent& event);
  void On(const ApplyTickEvent& event);

  ApplyStep Take() && { return {std::move(s_), std::move(actions_)}; }

 private:
  // apply_machine.cc
  void MakeSlots();
  void Enter(ApplyPhase phase);
  void Persist(PendingPhase phase, ApplyPhase next);
  void Call(WorkerSlot& slot, CallKind kind, std::int64_t delay_ms = 0);
  std::int64_t TimeoutOf(CallKind kind) const;
  // Calls again after a failure whose outcome is unknown; false when there were too many.
  bool Retry(WorkerSlot& slot, CallKind kind);
  // Counts a failed call; false when there were too many in this phase.
  bool MayTryAgain(WorkerSlot& slot) const;
  bool AllDone() const;
  void Report(ReportKind kind, std::size_t worker = 0);
  std::size_t IndexOf(const WorkerSlot& slot) const;

  // apply_prepare.cc
  void StartQuery();
  void OnQueried(WorkerSlot& slot, const ReplyEvent& reply);
  void AfterQuery();
  void TakeEpoch();
  void StartReleasing();
  void OnReleasing(WorkerSlot& slot, const ReplyEvent& reply);
  void AfterReleasing();
  void StartPreparing();
  void OnPrepared(WorkerSlot& slot, const ReplyEvent& reply);
  void NotePrepared(WorkerSlot& slot);
  void StartRenewing();

  // apply_commit.cc
  void StartCommitting();
  bool FollowersDone() const;
  void CommitOrRenew(WorkerSlot& slot, std::int64_t delay_ms = 0);
  void OnCommitting(WorkerSlot& slot, CallKind kind, const ReplyEvent& reply);
  void AfterCommitting();
  void StartCleaning();
  void OnCleaning(WorkerSlot& slot, const ReplyEvent& reply);

  // apply_retire.cc
  void Fail(const absl::Status& status);
  void StartAborting();
  void OnAborting(WorkerSlot& slot, const ReplyEvent& reply);
  void BeginRetiring();
  void StartRetiring();
  void OnRetiring(WorkerSlot& slot, const ReplyEvent& reply);
  void AfterRetiring();
  // Takes `status` for the failure if the one known so far only says that a peer was lost.
  void Explain(const absl::Status& status);
  void AfterFailure();
  void Settle();
  void Finish();

  ApplyState s_;
  const std::int64_t now_ms_;
  std::vector<ApplyAction> actions_;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_DISPATCH_APPLY_STEP_H_
