// From the durable COMMITTING to the last worker switched: nothing here goes back, except through Fail.
#include <algorithm>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/dispatch/apply_step.h"

namespace kvasir {

void ApplyStepper::StartCommitting() {
  for (WorkerSlot& slot : s_.workers) {
    slot.done = !slot.member;
  }
  // Rank 0's worker is the first slot; it waits for the others.
  for (std::size_t i = 1; i < s_.workers.size(); ++i) {
    if (s_.workers[i].member) {
      CommitOrRenew(s_.workers[i]);
    }
  }
  if (s_.phase == ApplyPhase::kCommitting && FollowersDone()) {
    CommitOrRenew(s_.workers[0]);
  }
}

bool ApplyStepper::FollowersDone() const {
  return std::all_of(s_.workers.begin() + 1, s_.workers.end(),
                     [](const WorkerSlot& slot) { return slot.done; });
}

void ApplyStepper::CommitOrRenew(WorkerSlot& slot, std::int64_t delay_ms) {
  // The commit's own deadline and as much again must fit into what is left of the lease: then a commit that
  // the worker executes finds its preparation.
  const std::int64_t left_ms = slot.lease_until_ms - (now_ms_ + delay_ms);
  if (slot.prepared && left_ms > 2 * s_.spec.times.commit_ms) {
    s_.commit_sent = true;
    Call(slot, CallKind::kCommit, delay_ms);
  } else {
    Call(slot, CallKind::kPrepare, delay_ms);
  }
}

void ApplyStepper::OnCommitting(WorkerSlot& slot, CallKind kind, const ReplyEvent& reply) {
  if (reply.status.ok() && kind == CallKind::kCommit) {
    slot.done = true;
    Report(ReportKind::kCommitted, IndexOf(slot));
    if (AllDone()) {
      AfterCommitting();
    } else if (FollowersDone() && s_.workers[0].call == 0) {
      CommitOrRenew(s_.workers[0]);
    }
    return;
  }
  if (reply.status.ok()) {  // prepared again, or its lease renewed
    NotePrepared(slot);
    if (IndexOf(slot) != 0 || FollowersDone()) {
      CommitOrRenew(slot);
    }
    return;
  }
  const bool lost_preparation = kind == CallKind::kCommit && ReasonOf(reply.status) == reason::kNotPrepared;
  if (!lost_preparation && !IsOutcomeUnknown(reply.status)) {
    Fail(reply.status);
    return;
  }
  if (!MayTryAgain(slot)) {
    Fail(reply.status);
    return;
  }
  if (lost_preparation || kind == CallKind::kPrepare) {
    slot.prepared = false;
    Call(slot, CallKind::kPrepare, kRetryDelayMs);
  } else {
    CommitOrRenew(slot, kRetryDelayMs);
  }
}

void ApplyStepper::AfterCommitting() { Enter(ApplyPhase::kCleaning); }

void ApplyStepper::StartCleaning() {
  for (WorkerSlot& slot : s_.workers) {
    if (slot.old && !slot.member) {
      Call(slot, CallKind::kRelease);
    } else {
      slot.done = true;
    }
  }
  if (AllDone()) {
    Settle();
  }
}

void ApplyStepper::OnCleaning(WorkerSlot& slot, const ReplyEvent& reply) {
  if (IsOutcomeUnknown(reply.status) && Retry(slot, CallKind::kRelease)) {
    return;
  }
  slot.unreachable = !reply.status.ok();
  slot.done = true;
  if (AllDone()) {
    Settle();
  }
}

}  // namespace kvasir
