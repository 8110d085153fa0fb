#include "worker/engine/worker_machine.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

// One application of StepWorker: the state under change and what has been decided so far.
class Step {
 public:
  Step(const DeploymentState& state, std::int64_t now_ms) : now_ms_(now_ms) { out_.state = state; }

  WorkerStep Take() && { return std::move(out_); }

  void On(const PrepareEvent& event) {
    ExpireLease();
    if (Fenced(event.key.epoch)) return;
    DeploymentState& s = out_.state;
    if (event.key.epoch == s.max_epoch) {
      if (s.running == event.key) return;
      if (Taken(event.key) || Ended(event.key)) return;
      if (s.pending.has_value()) {
        s.pending->lease_ms = event.lease_ms;
        s.pending->lease_until_ms = now_ms_ + event.lease_ms;
        return;
      }
    }
    SeeEpoch(event.key);
    if (s.pending.has_value()) FreePending("replaced by a newer preparation");
    s.pending = PendingPlan{event.key, event.lease_ms, now_ms_ + event.lease_ms, false};
    Act(WorkerActionKind::kStartPreparing, event.key, "");
  }

  void On(const PreparedEvent& event) {
    DeploymentState& s = out_.state;
    // A preparation that was aborted meanwhile, or outlived its lease, reports to nobody.
    if (!s.pending.has_value() || s.pending->key != event.key) {
      Act(WorkerActionKind::kFree, event.key, "the preparation was given up meanwhile");
      return;
    }
    if (!event.ok) {
      FreePending("the preparation failed");
      return;
    }
    s.pending->ready = true;
    s.pending->lease_until_ms = now_ms_ + s.pending->lease_ms;
  }

  void On(const CommitEvent& event) {
    ExpireLease();
    if (Fenced(event.key.epoch)) return;
    DeploymentState& s = out_.state;
    if (s.running == event.key) return;
    if (event.key.epoch == s.max_epoch && Taken(event.key)) return;
    if (!s.pending.has_value() || s.pending->key != event.key || !s.pending->ready) {
      Refuse(WorkerVerdict::kNotPrepared,
             absl::StrFormat("epoch %d of plan %s is %s; prepare it (again) and commit then",
                             event.key.epoch.value(), event.key.plan_id,
                             s.pending.has_value() && s.pending->key == event.key ? "still being prepared"
                                                                                  : "not prepared here"));
      return;
    }
    s.pending.reset();
    if (s.running.has_value()) StartDraining(event.drain_ms);
    s.running = event.key;
    s.failure.clear();
    Act(WorkerActionKind::kActivate, event.key, "");
  }

  void On(const AbortEvent& event) {
    ExpireLease();
    if (Fenced(event.key.epoch)) return;
    DeploymentState& s = out_.state;
    if (event.key.epoch == s.max_epoch && Taken(event.key)) return;
    if (s.running == event.key) {
      Refuse(
          WorkerVerdict::kAlreadyCommitted,
          absl::StrFormat("epoch %d is committed; release it under a higher epoch", event.key.epoch.value()));
      return;
    }
    SeeEpoch(event.key);
    s.max_epoch_ended = true;
    if (s.pending.has_value()) FreePending("aborted");
  }

  void On(const ReleaseEvent& event) {
    ExpireLease();
    if (Fenced(event.epoch)) return;
    DeploymentState& s = out_.state;
    const bool new_epoch = event.epoch > s.max_epoch;
    if (!new_epoch && !s.max_epoch_plan.empty()) {
      Refuse(WorkerVerdict::kEpochTaken,
             absl::StrFormat("epoch %d stands for plan %s; release under a higher epoch", event.epoch.value(),
                             s.max_epoch_plan));
      return;
    }
    SeeEpoch(PlanKey{event.epoch, ""});
    s.max_epoch_ended = true;
    s.failure.clear();
    if (s.pending.has_value()) FreePending("released");
    if (s.running.has_value()) {
      StartDraining(event.drain_ms);
      s.running.reset();
    }
  }

  void On(const DrainedEvent& event) {
    DeploymentState& s = out_.state;
    if (!s.draining.has_value() || s.draining->key != event.key) return;
    s.draining.reset();
    Act(WorkerActionKind::kFree, event.key, "drained");
  }

  void On(const LostEvent& event) {
    DeploymentState& s = out_.state;
    if (s.pending.has_value() && s.pending->key == event.key) {
      if (s.pending->ready) FreePending(event.reason);
    } else if (s.running == event.key) {
      s.running.reset();
      s.failure = event.reason;
      // Steps were run under this epoch; a second life under it could take a delayed one for its own.
      if (event.key.epoch == s.max_epoch) s.max_epoch_ended = true;
      Act(WorkerActionKind::kFree, event.key, event.reason);
    } else if (s.draining.has_value() && s.draining->key == event.key) {
      s.draining.reset();
      Act(WorkerActionKind::kFree, event.key, event.reason);
    }
  }

  void On(const TickEvent&) {
    ExpireLease();
    DeploymentState& s = out_.state;
    if (s.draining.has_value() && now_ms_ >= s.draining->until_ms) {
      const PlanKey key = s.draining->key;
      s.draining.reset();
      Act(WorkerActionKind::kFree, key, "the drain deadline passed");
    }
  }

 private:
  void Act(WorkerActionKind kind, const PlanKey& key, std::string reason) {
    out_.actions.push_back({kind, key, std::move(reason)});
  }

  void Refuse(WorkerVerdict verdict, std::string message) {
    out_.verdict = verdict;
    out_.message = std::move(message);
  }

  bool Fenced(Epoch epoch) {
    if (epoch >= out_.state.max_epoch) return false;
    Refuse(WorkerVerdict::kStaleEpoch,
           absl::StrFormat("epoch %d is below %d, the highest seen; take a higher one", epoch.value(),
                           out_.state.max_epoch.value()));
    return true;
  }

  // For an epoch equal to max_epoch.
  bool Taken(const PlanKey& key) {
    if (out_.state.max_epoch_plan == key.plan_id) return false;
    Refuse(WorkerVerdict::kEpochTaken,
           absl::StrFormat("epoch %d stands for %s, not for plan %s; take a higher epoch", key.epoch.value(),
                           out_.state.max_epoch_plan.empty() ? std::string("a release")
                                                             : "plan " + out_.state.max_epoch_plan,
                           key.plan_id));
    return true;
  }

  bool Ended(const PlanKey& key) {
    if (!out_.state.max_epoch_ended) return false;
    Refuse(WorkerVerdict::kEpochEnded,
           absl::StrFormat("epoch %d was aborted, released or failed; take a higher one", key.epoch.value()));
    return true;
  }

  void SeeEpoch(const PlanKey& key) {
    DeploymentState& s = out_.state;
    if (key.epoch > s.max_epoch) s.max_epoch_ended = false;
    s.max_epoch = key.epoch;
    s.max_epoch_plan = key.plan_id;
  }

  void ExpireLease() {
    const auto& pending = out_.state.pending;
    // A preparation at work keeps its memory until its thread ends: nothing could take it away safely.
    if (pending.has_value() && pending->ready && now_ms_ >= pending->lease_until_ms)
      FreePending("the lease expired");
  }

  void FreePending(std::string reason) {
    const PlanKey key = out_.state.pending->key;
    out_.state.pending.reset();
    Act(WorkerActionKind::kFree, key, std::move(reason));
  }

  // Moves `running` to `draining`; an older draining plan ends at once.
  void StartDraining(std::int64_t drain_ms) {
    DeploymentState& s = out_.state;
    if (s.draining.has_value()) Act(WorkerActionKind::kFree, s.draining->key, "a newer plan drains");
    s.draining = DrainingPlan{*s.running, now_ms_ + drain_ms};
    Act(WorkerActionKind::kDrain, *s.running, "");
  }

  std::int64_t now_ms_;
  WorkerStep out_;
};

}  // namespace

std::string_view WorkerVerdictName(WorkerVerdict verdict) {
  switch (verdict) {
    case WorkerVerdict::kOk:
      return "OK";
    case WorkerVerdict::kStaleEpoch:
      return "STALE_EPOCH";
    case WorkerVerdict::kEpochTaken:
      return "EPOCH_TAKEN";
    case WorkerVerdict::kEpochEnded:
      return "EPOCH_ENDED";
    case WorkerVerdict::kNotPrepared:
      return "NOT_PREPARED";
    case WorkerVerdict::kAlreadyCommitted:
      return "ALREADY_COMMITTED";
  }
  return "UNKNOWN";
}

WorkerStep StepWorker(const DeploymentState& state, const WorkerEvent& event, std::int64_t now_ms) {
  Step step(state, now_ms);
  std::visit([&step](const auto& e) { step.On(e); }, event);
  return std::move(step).Take();
}

bool MayExecute(const DeploymentState& state, const PlanKey& key) {
  return state.running == key || (state.draining.has_value() && state.draining->key == key);
}

bool Holds(const DeploymentState& state, const PlanKey& key) {
  return MayExecute(state, key) || (state.pending.has_value() && state.pending->key == key);
}

}  // namespace kvasir
