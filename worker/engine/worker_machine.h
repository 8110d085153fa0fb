// What one worker holds for one deployment, as a pure function of what happened: two phases, fenced by an
// epoch (DESIGN section 4). No clock, threads or memory: time is an argument, and what must be done comes
// back as actions. The service runs it under a lock; the tests run it over every order of events.
//
// Rules, in the order they are applied:
//   * control events carry an epoch; one below max_epoch is refused (kStaleEpoch);
//   * one epoch stands for one plan; another plan under the same epoch is refused (kEpochTaken), and so is a
//     preparation under an epoch that was aborted, released or lost (kEpochEnded): a delayed message cannot
//     take memory;
//   * a repeated event succeeds and changes nothing, except that a repeated Prepare renews the lease;
//   * Execute is not fenced: its epoch and plan must equal the running or the draining ones.
#ifndef KVASIR_WORKER_ENGINE_WORKER_MACHINE_H_
#define KVASIR_WORKER_ENGINE_WORKER_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/units.h"

namespace kvasir {

// A plan under an epoch: what every control call names.
struct PlanKey {
  Epoch epoch;
  std::string plan_id;
  friend auto operator<=>(const PlanKey&, const PlanKey&) = default;
};

struct PendingPlan {
  PlanKey key;
  std::int64_t lease_ms = 0;
  std::int64_t lease_until_ms =
      0;               // counts from the last Prepare, or from the preparation's end if that is later
  bool ready = false;  // false while the preparation is at work
  friend bool operator==(const PendingPlan&, const PendingPlan&) = default;
};

struct DrainingPlan {
  PlanKey key;
  std::int64_t until_ms = 0;
  friend bool operator==(const DrainingPlan&, const DrainingPlan&) = default;
};

struct DeploymentState {
  Epoch max_epoch;               // 0: nothing seen yet
  std::string max_epoch_plan;    // the plan that max_epoch stands for; empty after a release
  bool max_epoch_ended = false;  // aborted, released, or lost while running: cannot be prepared any more
  std::optional<PlanKey> running;
  std::optional<DrainingPlan> draining;
  std::optional<PendingPlan> pending;
  std::string failure;  // why the last running plan ended by itself, until the next commit or release
  friend bool operator==(const DeploymentState&, const DeploymentState&) = default;
};

// Events. Times are milliseconds of one monotonic clock.
struct PrepareEvent {
  PlanKey key;
  std::int64_t lease_ms = 0;
};
struct PreparedEvent {  // the preparation's thread has ended
  PlanKey key;
  bool ok = false;
};
struct CommitEvent {
  PlanKey key;
  std::int64_t drain_ms = 0;
};
struct AbortEvent {
  PlanKey key;
};
struct ReleaseEvent {  // retires every plan; `epoch` must exceed those of the plans to be retired, or repeat
                       // itself
  Epoch epoch;
  std::int64_t drain_ms = 0;
};
struct DrainedEvent {  // the plan's last sequence has ended
  PlanKey key;
};
// A rank died or a step failed: the plan cannot serve any more. Ignored while the preparation is at work,
// which finds out by itself.
struct LostEvent {
  PlanKey key;
  std::string reason;
};
struct TickEvent {};

using WorkerEvent = std::variant<PrepareEvent, PreparedEvent, CommitEvent, AbortEvent, ReleaseEvent,
                                 DrainedEvent, LostEvent, TickEvent>;

// What the service does after a step, in order.
enum class WorkerActionKind : std::int8_t {
  kStartPreparing,  // allocate and build, then send PreparedEvent
  kActivate,        // the plan takes new sequences
  kDrain,           // the plan takes no new sequences; send DrainedEvent when its last one has ended
  kFree,            // end what runs under it (PLAN_RETIRED, or `reason`) and free its memory
};
struct WorkerAction {
  WorkerActionKind kind = WorkerActionKind::kFree;
  PlanKey key;
  std::string reason;  // kFree: "lease expired", ...
  friend bool operator==(const WorkerAction&, const WorkerAction&) = default;
};

enum class WorkerVerdict : std::int8_t {
  kOk,
  kStaleEpoch,
  kEpochTaken,
  kEpochEnded,
  kNotPrepared,       // commit without a ready preparation
  kAlreadyCommitted,  // abort of the running plan: release it
};
// "STALE_EPOCH" ...: the ErrorInfo reasons.
[[nodiscard]] std::string_view WorkerVerdictName(WorkerVerdict verdict);

struct WorkerStep {
  DeploymentState state;
  WorkerVerdict verdict = WorkerVerdict::kOk;
  std::string message;  // empty when ok: what was refused, both values, the way out
  std::vector<WorkerAction> actions;
};

[[nodiscard]] WorkerStep StepWorker(const DeploymentState& state, const WorkerEvent& event,
                                    std::int64_t now_ms);

// The plan equals the running or the draining one. Drain deadlines are enforced by ticks, not here.
[[nodiscard]] bool MayExecute(const DeploymentState& state, const PlanKey& key);

// Whether memory may be held for the plan: it is pending, running or draining.
[[nodiscard]] bool Holds(const DeploymentState& state, const PlanKey& key);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_WORKER_MACHINE_H_
