// The ways back: abort before anything was committed, retire everything after that, restore the old plan.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/dispatch/apply_step.h"

namespace kvasir {
namespace {

// A peer's loss is a consequence; the failure that came with it is the explanation.
bool IsConsequence(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == reason::kRankLost || reason == reason::kEpochEnded || reason == reason::kNotPrepared;
}

}  // namespace

void ApplyStepper::Fail(const absl::Status& status) {
  KVASIR_CHECK(!status.ok());
  if (s_.failure.ok()) {
    s_.failure = status;
  }
  if (ReasonOf(status) == reason::kStaleEpoch) {
    // Somebody else has taken over these workers: touch nothing of theirs.
    s_.fallback.reset();
    Settle();
    return;
  }
  switch (s_.phase) {
    case ApplyPhase::kPreparing:
    case ApplyPhase::kRenewing:
    case ApplyPhase::kCommitting:
      break;
    case ApplyPhase::kQuerying:
      if (s_.roll_forward) {
        break;  // some workers may have been switched before the restart
      }
      [[fallthrough]];
    default:
      AfterFailure();
      return;
  }
  if (s_.commit_sent) {
    BeginRetiring();
  } else {
    Persist(PendingPhase::kAborting, ApplyPhase::kAborting);
  }
}

void ApplyStepper::StartAborting() {
  for (WorkerSlot& slot : s_.workers) {
    slot.prepared = false;
    if (slot.member) {
      Call(slot, CallKind::kAbort);
    } else {
      slot.done = true;
    }
  }
}

void ApplyStepper::OnAborting(WorkerSlot& slot, const ReplyEvent& reply) {
  if (IsOutcomeUnknown(reply.status) && Retry(slot, CallKind::kAbort)) {
    return;
  }
  Explain(reply.status);
  slot.unreachable = !reply.status.ok();  // its lease frees what it prepared
  slot.done = true;
  if (AllDone()) {
    AfterFailure();
  }
}

void ApplyStepper::BeginRetiring() {
  TakeEpoch();
  // Nothing that serves survives a failure after the first commit, so nothing is worth a long drain.
  s_.drain_ms = s_.deleting ? s_.drain_ms : 0;
  Persist(PendingPhase::kRetiring, ApplyPhase::kRetiring);
}

void ApplyStepper::StartRetiring() {
  for (WorkerSlot& slot : s_.workers) {
    slot.prepared = false;
    Call(slot, CallKind::kRelease);
  }
  if (s_.workers.empty()) {
    AfterRetiring();
  }
}

void ApplyStepper::OnRetiring(WorkerSlot& slot, const ReplyEvent& reply) {
  if (IsOutcomeUnknown(reply.status) && Retry(slot, CallKind::kRelease)) {
    return;
  }
  Explain(reply.status);
  slot.unreachable = !reply.status.ok();
  slot.done = true;
  if (AllDone()) {
    AfterRetiring();
  }
}

void ApplyStepper::AfterRetiring() {
  s_.record.serving.reset();
  s_.record.deleted = s_.deleting;
  AfterFailure();
}

void ApplyStepper::Explain(const absl::Status& status) {
  if (!status.ok() && !s_.failure.ok() && IsConsequence(s_.failure) && !IsConsequence(status)) {
    s_.failure = status;
  }
}

void ApplyStepper::AfterFailure() {
  if (!s_.fallback.has_value() || s_.deleting) {
    Settle();
    return;
  }
  s_.spec = *std::exchange(s_.fallback, std::nullopt);
  s_.restoring = true;
  s_.commit_sent = false;
  s_.roll_forward = false;
  // Its workers may hold parts of either plan: free them before preparing. They count as old ones even where
  // the record has no serving plan any more.
  s_.release_first = true;
  s_.drain_ms = 0;
  MakeSlots();
  for (WorkerSlot& slot : s_.workers) {
    slot.old = true;
  }
  Enter(ApplyPhase::kQuerying);
}

void ApplyStepper::Settle() {
  if (s_.phase == ApplyPhase::kCleaning) {
    s_.record.serving = ServingPlan{s_.epoch, s_.spec};
    if (s_.restoring && !s_.failure.ok()) {
      TypedError error = ErrorOf(s_.failure);
      error.message += absl::StrFormat("; the old plan serves again as epoch %d", s_.epoch.value());
      s_.failure = MakeError(error);
    }
  }
  if (s_.preflight && !s_.record.serving.has_value()) {
    s_.record.deleted = true;  // it was never a deployment
  }
  s_.record.pending.reset();
  s_.record.last_error = {};
  if (!s_.failure.ok()) {
    const TypedError error = ErrorOf(s_.failure);
    s_.record.last_error = {static_cast<std::int32_t>(error.code), error.reason, error.message};
  }
  s_.next_phase = ApplyPhase::kFinished;
  actions_.push_back(PersistAction{s_.record});
}

void ApplyStepper::Finish() {
  s_.phase = ApplyPhase::kFinished;
  actions_.push_back(FinishAction{s_.failure});
}

}  // namespace kvasir
