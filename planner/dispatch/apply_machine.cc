// The frame of the machine: events in, phases, calls. The phases themselves: apply_start.cc,
// apply_prepare.cc, apply_commit.cc, apply_retire.cc.
#include "planner/dispatch/apply_machine.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/dispatch/apply_step.h"

namespace kvasir {

void ApplyStepper::On(const PersistedEvent& event) {
  const ApplyPhase next = std::exchange(s_.next_phase, ApplyPhase::kIdle);
  if (event.status.ok()) {
    ++s_.record.version;
    Enter(next);
    return;
  }
  if (s_.failure.ok()) {
    s_.failure = event.status;
  }
  const bool superseded = event.status.code() == absl::StatusCode::kAborted;
  const bool nothing_to_undo = next == ApplyPhase::kReleasing || next == ApplyPhase::kPreparing ||
                               (next == ApplyPhase::kRetiring && s_.deleting);
  if (superseded || nothing_to_undo || next == ApplyPhase::kFinished) {
    Finish();
  } else if (next == ApplyPhase::kCommitting) {
    Enter(ApplyPhase::kAborting);
  } else {
    Enter(next);  // freeing memory does not depend on remembering it
  }
}

void ApplyStepper::On(const ReplyEvent& event) {
  if (event.worker >= s_.workers.size() || s_.workers[event.worker].call != event.call || event.call == 0) {
    return;  // of a call that was given up
  }
  WorkerSlot& slot = s_.workers[event.worker];
  slot.call = 0;
  const CallKind kind = slot.call_kind;
  if (event.status.ok()) {
    slot.seen.max_epoch = std::max(slot.seen.max_epoch, event.seen.max_epoch);
    slot.seen.holds_memory = event.seen.holds_memory;
  }
  switch (s_.phase) {
    case ApplyPhase::kQuerying:
      return OnQueried(slot, event);
    case ApplyPhase::kReleasing:
      return OnReleasing(slot, event);
    case ApplyPhase::kPreparing:
    case ApplyPhase::kRenewing:
      return OnPrepared(slot, event);
    case ApplyPhase::kCommitting:
      return OnCommitting(slot, kind, event);
    case ApplyPhase::kCleaning:
      return OnCleaning(slot, event);
    case ApplyPhase::kAborting:
      return OnAborting(slot, event);
    case ApplyPhase::kRetiring:
      return OnRetiring(slot, event);
    case ApplyPhase::kIdle:
    case ApplyPhase::kFinished:
      return;
  }
}

void ApplyStepper::On(const ApplyTickEvent& /*event*/) {
  const bool waiting = s_.phase == ApplyPhase::kPreparing || s_.phase == ApplyPhase::kRenewing ||
                       s_.phase == ApplyPhase::kCommitting;
  if (!waiting) {
    return;
  }
  // A worker that waits for the others must not lose its preparation meanwhile.
  for (WorkerSlot& slot : s_.workers) {
    const bool committed = s_.phase == ApplyPhase::kCommitting && slot.done;
    if (slot.member && slot.prepared && slot.call == 0 && !committed && now_ms_ >= slot.renew_at_ms) {
      Call(slot, CallKind::kPrepare);
    }
  }
}

void ApplyStepper::Enter(ApplyPhase phase) {
  s_.phase = phase;
  for (WorkerSlot& slot : s_.workers) {
    slot.call = 0;
    slot.tries = 0;
    slot.done = false;
    // What was given up last is part of the answer.
    slot.unreachable = slot.unreachable && phase == ApplyPhase::kFinished;
  }
  if (phase != ApplyPhase::kFinished) {
    Report(ReportKind::kPhase);
  }
  switch (phase) {
    case ApplyPhase::kQuerying:
      return StartQuery();
    case ApplyPhase::kReleasing:
      return StartReleasing();
    case ApplyPhase::kPreparing:
      return StartPreparing();
    case ApplyPhase::kRenewing:
      return StartRenewing();
    case ApplyPhase::kCommitting:
      return StartCommitting();
    case ApplyPhase::kCleaning:
      return StartCleaning();
    case ApplyPhase::kAborting:
      return StartAborting();
    case ApplyPhase::kRetiring:
      return StartRetiring();
    case ApplyPhase::kFinished:
      return Finish();
    case ApplyPhase::kIdle:
      return;
  }
}

void ApplyStepper::Persist(PendingPhase phase, ApplyPhase next) {
  s_.record.pending = PendingApply{.epoch = s_.epoch,
                                   .phase = phase,
                                   .spec = s_.spec,
                                   .fallback = s_.fallback,
                                   .restoring = s_.restoring,
                                   .deleting = s_.deleting,
                                   .request_id = s_.request_id};
  s_.next_phase = next;
  actions_.push_back(PersistAction{s_.record});
}

void ApplyStepper::Call(WorkerSlot& slot, CallKind kind, std::int64_t delay_ms) {
  slot.call = ++s_.calls;
  slot.call_kind = kind;
  slot.sent_ms = now_ms_;  // not later than it is sent, so that a lease is never thought longer than it is
  actions_.push_back(CallAction{.worker = IndexOf(slot),
                                .call = slot.call,
                                .kind = kind,
                                .epoch = s_.epoch,
                                .delay_ms = delay_ms,
                                .timeout_ms = TimeoutOf(kind)});
}

std::int64_t ApplyStepper::TimeoutOf(CallKind kind) const {
  switch (kind) {
    case CallKind::kPrepare:
      // Later, a preparation is repeated to renew its lease, which is quick, or because it was lost.
      return s_.phase == ApplyPhase::kPreparing ? std::max<std::int64_t>(s_.deadline_ms - now_ms_, 1)
                                                : s_.spec.times.prepare_ms;
    case CallKind::kCommit:
      return s_.spec.times.commit_ms;
    case CallKind::kQuery:
    case CallKind::kAbort:
    case CallKind::kRelease:
      return kControlMs;
  }
  return kControlMs;
}

bool ApplyStepper::Retry(WorkerSlot& slot, CallKind kind) {
  if (!MayTryAgain(slot)) {
    return false;
  }
  Call(slot, kind, kRetryDelayMs);
  return true;
}

bool ApplyStepper::MayTryAgain(WorkerSlot& slot) const {
  const bool patient = s_.commit_sent && s_.phase != ApplyPhase::kRetiring;
  return ++slot.tries < (patient ? kTriesCommittedMax : kTriesMax);
}

bool ApplyStepper::AllDone() const {
  return std::all_of(s_.workers.begin(), s_.workers.end(), [](const WorkerSlot& slot) { return slot.done; });
}

void ApplyStepper::Report(ReportKind kind, std::size_t worker) {
  actions_.push_back(ReportAction{kind, worker});
}

std::size_t ApplyStepper::IndexOf(const WorkerSlot& slot) const {
  return static_cast<std::size_t>(&slot - s_.workers.data());
}

std::string_view ApplyPhaseName(ApplyPhase phase) {
  switch (phase) {
    case ApplyPhase::kIdle:
      return "idle";
    case ApplyPhase::kQuerying:
      return "querying";
    case ApplyPhase::kReleasing:
      return "releasing";
    case ApplyPhase::kPreparing:
      return "preparing";
    case ApplyPhase::kRenewing:
      return "renewing";
    case ApplyPhase::kCommitting:
      return "committing";
    case ApplyPhase::kCleaning:
      return "cleaning";
    case ApplyPhase::kAborting:
      return "aborting";
    case ApplyPhase::kRetiring:
      return "retiring";
    case ApplyPhase::kFinished:
      return "finished";
  }
  return "invalid";
}

ApplyState MakeApplyState(const DeploymentRecord& record) {
  ApplyState state;
  state.record = record;
  return state;
}

ApplyStep StepApply(ApplyState state, const ApplyEvent& event, std::int64_t now_ms) {
  ApplyStepper stepper(std::move(state), now_ms);
  std::visit([&stepper](const auto& e) { stepper.On(e); }, event);
  return std::move(stepper).Take();
}

bool IsOutcomeUnknown(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == reason::kPeerUnreachable || status.code() == absl::StatusCode::kDeadlineExceeded ||
         (status.code() == absl::StatusCode::kUnavailable &&
          reason == absl::StatusCodeToString(status.code()));
}

}  // namespace kvasir
