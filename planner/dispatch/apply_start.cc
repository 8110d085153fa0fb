// How the machine begins: an apply, a delete, or what a restarted planner finds in its record.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/dispatch/apply_machine.h"
#include "planner/dispatch/apply_step.h"

namespace kvasir {

void ApplyStepper::On(const StartApplyEvent& event) {
  KVASIR_CHECK(s_.phase == ApplyPhase::kIdle);
  s_.spec = event.spec;
  s_.preflight = event.preflight;
  s_.request_id = event.request_id;
  s_.drain_ms = event.spec.times.drain_ms;
  // A preflight never touches what serves.
  s_.release_first = event.mode == ApplyMode::kReplace && s_.record.serving.has_value() && !event.preflight;
  if (s_.release_first) {
    s_.fallback = s_.record.serving->spec;
  }
  MakeSlots();
  Enter(ApplyPhase::kQuerying);
}

void ApplyStepper::On(const StartDeleteEvent& event) {
  KVASIR_CHECK(s_.phase == ApplyPhase::kIdle);
  s_.deleting = true;
  s_.drain_ms = event.drain_ms;
  if (s_.record.serving.has_value()) {
    s_.spec = s_.record.serving->spec;
  }
  MakeSlots();
  Enter(ApplyPhase::kQuerying);
}

void ApplyStepper::On(const RecoverEvent& /*event*/) {
  KVASIR_CHECK(s_.phase == ApplyPhase::kIdle);
  if (!s_.record.pending.has_value()) {
    Finish();
    return;
  }
  const PendingApply& pending = *s_.record.pending;
  s_.spec = pending.spec;
  s_.fallback = pending.fallback;
  s_.restoring = pending.restoring;
  s_.deleting = pending.deleting;
  s_.request_id = pending.request_id;
  s_.epoch = pending.epoch;
  s_.drain_ms = pending.spec.times.drain_ms;
  if (pending.restoring && !pending.fallback.has_value()) {
    s_.fallback = pending.spec;  // a restart is not the old plan's fault: try it once more
  }
  MakeSlots();
  const absl::Status restarted =
      MakeError({.code = absl::StatusCode::kUnavailable,
                 .reason = reason::kPlannerRestarted,
                 .message = absl::StrFormat("the planner restarted while epoch %d was %s; apply again",
                                            pending.epoch.value(), PendingPhaseName(pending.phase))});
  switch (pending.phase) {
    case PendingPhase::kCommitting:
      s_.roll_forward = true;
      s_.commit_sent = true;
      Enter(ApplyPhase::kQuerying);
      return;
    case PendingPhase::kRetiring:
      s_.failure = s_.deleting ? absl::OkStatus() : restarted;
      Enter(ApplyPhase::kRetiring);
      return;
    case PendingPhase::kReleasing:
      s_.failure = restarted;
      AfterFailure();
      return;
    case PendingPhase::kPreparing:
    case PendingPhase::kAborting:
      s_.failure = restarted;
      Persist(PendingPhase::kAborting, ApplyPhase::kAborting);
      return;
  }
}

void ApplyStepper::MakeSlots() {
  s_.workers.clear();
  for (const WorkerTarget& target : s_.spec.workers) {
    WorkerSlot slot;
    slot.target = target;
    slot.member = true;
    s_.workers.push_back(std::move(slot));
  }
  if (!s_.record.serving.has_value() || s_.preflight) {
    return;
  }
  for (const WorkerTarget& target : s_.record.serving->spec.workers) {
    const auto same = std::find_if(s_.workers.begin(), s_.workers.end(), [&](const WorkerSlot& slot) {
      return slot.target.address == target.address;
    });
    if (same != s_.workers.end()) {
      same->old = true;
      continue;
    }
    WorkerSlot slot;
    slot.target = target;
    slot.old = true;
    s_.workers.push_back(std::move(slot));
  }
}

}  // namespace kvasir
