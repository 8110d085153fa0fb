// From the first question to the last renewed lease: nothing here commits anything.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/dispatch/apply_step.h"

namespace kvasir {

void ApplyStepper::StartQuery() {
  for (WorkerSlot& slot : s_.workers) {
    Call(slot, CallKind::kQuery);
  }
  if (s_.workers.empty()) {
    AfterQuery();
  }
}

void ApplyStepper::OnQueried(WorkerSlot& slot, const ReplyEvent& reply) {
  if (reply.status.ok()) {
    slot.seen = reply.seen;
  } else if (Retry(slot, CallKind::kQuery)) {
    return;
  } else if (slot.member && !s_.deleting) {
    Fail(reply.status);
    return;
  } else {
    slot.unreachable = true;  // it fences itself when it next sees a higher epoch
  }
  slot.done = true;
  if (AllDone()) {
    AfterQuery();
  }
}

void ApplyStepper::AfterQuery() {
  if (s_.deleting) {
    BeginRetiring();
    return;
  }
  if (absl::Status agreed = CompareFacts(s_.workers); !agreed.ok()) {
    Fail(agreed);
    return;
  }
  for (const WorkerSlot& slot : s_.workers) {
    const auto wanted = static_cast<std::int64_t>(slot.target.ranks.size());
    if (slot.member && wanted > slot.seen.rank_count_max) {
      Fail(MakeError({.code = absl::StatusCode::kFailedPrecondition,
                      .reason = reason::kRankCapacity,
                      .message = absl::StrFormat("worker %s hosts at most %d ranks and was given %d",
                                                 slot.target.address, slot.seen.rank_count_max, wanted),
                      .field = "workers",
                      .metadata = {{"worker", slot.target.address}}}));
      return;
    }
  }
  if (s_.roll_forward) {
    Enter(ApplyPhase::kRenewing);
    return;
  }
  TakeEpoch();
  if (s_.release_first) {
    s_.record.serving.reset();  // from the first release on nobody can say that it serves; `fallback` has it
    Persist(PendingPhase::kReleasing, ApplyPhase::kReleasing);
  } else {
    Persist(PendingPhase::kPreparing, ApplyPhase::kPreparing);
  }
}

void ApplyStepper::TakeEpoch() {
  Epoch highest = s_.record.max_epoch;
  for (const WorkerSlot& slot : s_.workers) {
    highest = std::max(highest, slot.seen.max_epoch);
  }
  s_.epoch = Epoch(highest.value() + 1);
  s_.record.max_epoch = s_.epoch;
  s_.record.deleted = false;
}

void ApplyStepper::StartReleasing() {
  s_.deadline_ms = now_ms_ + s_.drain_ms + kDrainSlackMs;
  for (WorkerSlot& slot : s_.workers) {
    if (slot.old) {
      Call(slot, CallKind::kRelease);
    } else {
      slot.done = true;
    }
  }
  if (AllDone()) {
    AfterReleasing();
  }
}

void ApplyStepper::OnReleasing(WorkerSlot& slot, const ReplyEvent& reply) {
  if (!reply.status.ok()) {
    if (IsOutcomeUnknown(reply.status) && Retry(slot, slot.call_kind)) {
      return;
    }
    if (slot.member) {
      Fail(reply.status);
      return;
    }
    slot.unreachable = true;
  } else if (reply.seen.holds_memory) {
    if (now_ms_ < s_.deadline_ms) {
      Call(slot, CallKind::kQuery, kPollDelayMs);  // sequences of the old plan are still running
      return;
    }
    Fail(MakeError(
        {.code = absl::StatusCode::kDeadlineExceeded,
         .reason = reason::kDeadlineExpired,
         .message = absl::StrFormat("worker %s still holds the old plan %d ms after its drain deadline",
                                    slot.target.address, kDrainSlackMs),
         .metadata = {{"worker", slot.target.address}}}));
    return;
  }
  slot.done = true;
  if (AllDone()) {
    AfterReleasing();
  }
}

void ApplyStepper::AfterReleasing() {
  s_.release_first = false;
  TakeEpoch();  // the released epoch stands for no plan
  Persist(PendingPhase::kPreparing, ApplyPhase::kPreparing);
}

void ApplyStepper::StartPreparing() {
  s_.deadline_ms = now_ms_ + s_.spec.times.prepare_ms;
  for (WorkerSlot& slot : s_.workers) {
    slot.prepared = false;
    if (slot.member) {
      Call(slot, CallKind::kPrepare);
    } else {
      slot.done = true;
    }
  }
}

void ApplyStepper::StartRenewing() {
  for (WorkerSlot& slot : s_.workers) {
    if (slot.member) {
      Call(slot, CallKind::kPrepare);
    } else {
      slot.done = true;
    }
  }
}

void ApplyStepper::OnPrepared(WorkerSlot& slot, const ReplyEvent& reply) {
  if (!reply.status.ok()) {
    slot.prepared = false;
    slot.done = false;
    const bool time_left = s_.phase == ApplyPhase::kRenewing || now_ms_ + kRetryDelayMs < s_.deadline_ms;
    if (!(IsOutcomeUnknown(reply.status) && time_left && Retry(slot, CallKind::kPrepare))) {
      Fail(reply.status);
    }
    return;
  }
  if (s_.phase == ApplyPhase::kPreparing && !slot.done) {
    Report(ReportKind::kPrepared, IndexOf(slot));
  }
  NotePrepared(slot);
  slot.done = true;
  if (!AllDone()) {
    return;
  }
  if (s_.phase == ApplyPhase::kPreparing) {
    if (s_.preflight) {
      Persist(PendingPhase::kAborting, ApplyPhase::kAborting);
    } else {
      Enter(ApplyPhase::kRenewing);
    }
  } else if (s_.roll_forward) {
    Enter(ApplyPhase::kCommitting);
  } else {
    Persist(PendingPhase::kCommitting, ApplyPhase::kCommitting);
  }
}

void ApplyStepper::NotePrepared(WorkerSlot& slot) {
  slot.prepared = true;
  // The worker counts its lease from this call's arrival or later, so this is never too long.
  slot.lease_until_ms = slot.sent_ms + LeaseMs(s_.spec.times);
  slot.renew_at_ms = now_ms_ + LeaseMs(s_.spec.times) / 2;
}

}  // namespace kvasir
