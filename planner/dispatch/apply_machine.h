// How a plan gets onto its workers and off them again, as a pure function of what happened: two phases,
// fenced by an epoch (DESIGN section 4). No clock, network or files: time is an argument, and what must be
// done comes back as actions. One machine runs at a time for a deployment.
//
//   apply     query -> [replace: release the old plan] -> prepare -> renew leases -> persist COMMITTING ->
//   commit
//             (rank 0's worker last) -> release workers that only the old plan had -> done
//   failure   before the first commit may have been sent: abort; after it: retire everything under a new
//   epoch.
//             With `replace`, the old plan is then prepared and committed again.
//   restart   a record in COMMITTING is rolled forward; any other is aborted (or its release is repeated).
//
// Invariants, checked by the explorer test: a commit is sent only after COMMITTING is durable and while more
// than twice its deadline is left of that worker's lease; one epoch stands for one plan; epochs only grow;
// rank 0's worker is committed after all others.
#ifndef KVASIR_PLANNER_DISPATCH_APPLY_MACHINE_H_
#define KVASIR_PLANNER_DISPATCH_APPLY_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/units.h"
#include "planner/dispatch/apply_spec.h"
#include "planner/dispatch/deployment_record.h"

namespace kvasir {

enum class ApplyMode : std::int8_t { kSideBySide, kReplace };

enum class ApplyPhase : std::int8_t {
  kIdle,
  kQuerying,    // what are the workers, which epochs have they seen
  kReleasing,   // replace: the old plan drains and is freed
  kPreparing,   // all workers prepare
  kRenewing,    // all are prepared; leases are renewed
  kCommitting,  // COMMITTING is durable; workers switch
  kCleaning,    // all have switched; workers that only the old plan had are released
  kAborting,    // preparations are freed
  kRetiring,    // everything is freed under a new epoch
  kFinished,
};
// querying | releasing | ...
[[nodiscard]] std::string_view ApplyPhaseName(ApplyPhase phase);

enum class CallKind : std::int8_t { kQuery, kPrepare, kCommit, kAbort, kRelease };

// What a worker said of itself.
struct WorkerObservation {
  Epoch max_epoch = {};
  bool holds_memory = false;  // something runs, drains or is prepared
  std::string comm_host = {};
  std::int32_t comm_port = 0;
  std::int32_t rank_count_max = 0;
  std::vector<std::pair<std::string, std::string>> facts = {};  // by name; must agree between workers
  friend bool operator==(const WorkerObservation&, const WorkerObservation&) = default;
};

struct WorkerSlot {
  WorkerTarget target = {};
  bool member = false;  // of the plan being applied
  bool old = false;     // of the plan that serves, or served, before
  WorkerObservation seen = {};
  std::int64_t call = 0;  // the call that is out; 0: none
  CallKind call_kind = CallKind::kQuery;
  std::int64_t sent_ms = 0;
  int tries = 0;      // failed calls in this phase
  bool done = false;  // with this phase
  bool prepared = false;
  std::int64_t lease_until_ms = 0;  // no later than the worker's own
  std::int64_t renew_at_ms = 0;
  bool unreachable = false;  // given up in this phase
};

struct ApplyState {
  DeploymentRecord record;  // as last written, or as it is to be written
  ApplyPhase phase = ApplyPhase::kIdle;
  ApplyPhase next_phase = ApplyPhase::kIdle;  // entered when the record is durable
  ApplySpec spec;
  std::optional<ApplySpec> fallback;
  bool preflight = false;
  bool deleting = false;
  bool restoring = false;
  bool release_first = false;  // free the old plan before preparing
  bool roll_forward = false;   // after a restart, from COMMITTING
  bool commit_sent = false;    // or may have been, before a restart
  std::int64_t drain_ms = 0;   // for the next releases
  std::string request_id;
  Epoch epoch;
  std::int64_t deadline_ms = 0;  // of the phase, where it has one
  std::int64_t calls = 0;        // ids given out
  std::vector<WorkerSlot> workers;
  absl::Status failure;  // the first one, or a better explanation of it
};

// Events.
struct StartApplyEvent {
  ApplySpec spec = {};
  ApplyMode mode = ApplyMode::kSideBySide;
  bool preflight = false;  // prepare, report, abort
  std::string request_id = {};
};
struct StartDeleteEvent {
  std::int64_t drain_ms = 0;
};
struct RecoverEvent {};  // after a restart, for a record with a pending apply
// The answer to PersistAction; no other event comes between the two.
struct PersistedEvent {
  absl::Status status;
};
struct ReplyEvent {
  std::size_t worker = 0;
  std::int64_t call = 0;
  // Unavailable PEER_UNREACHABLE and DeadlineExceeded mean that nobody knows whether the call was executed.
  absl::Status status;
  WorkerObservation seen;  // when ok; of kQuery all fields, of others max_epoch and holds_memory
};
struct ApplyTickEvent {};  // time has passed

using ApplyEvent =
    std::variant<StartApplyEvent, StartDeleteEvent, RecoverEvent, PersistedEvent, ReplyEvent, ApplyTickEvent>;

// Actions, to be carried out in order.
struct PersistAction {
  DeploymentRecord record;
};
struct CallAction {
  std::size_t worker = 0;
  std::int64_t call = 0;
  CallKind kind = CallKind::kQuery;
  Epoch epoch = {};
  std::int64_t delay_ms = 0;    // before it is sent
  std::int64_t timeout_ms = 0;  // after it was sent
};
enum class ReportKind : std::int8_t { kPhase, kPrepared, kCommitted };
struct ReportAction {
  ReportKind kind = ReportKind::kPhase;
  std::size_t worker = 0;  // of kPrepared and kCommitted
};
struct FinishAction {
  absl::Status status;
};
using ApplyAction = std::variant<PersistAction, CallAction, ReportAction, FinishAction>;

struct ApplyStep {
  ApplyState state;
  std::vector<ApplyAction> actions;
};

// A machine for the deployment of `record`.
[[nodiscard]] ApplyState MakeApplyState(const DeploymentRecord& record);

[[nodiscard]] ApplyStep StepApply(ApplyState state, const ApplyEvent& event, std::int64_t now_ms);

// FailedPrecondition (RANKS_DISAGREE) naming worker, fact and both values, unless all members have equal
// facts.
[[nodiscard]] absl::Status CompareFacts(const std::vector<WorkerSlot>& workers);

// Whether a call's failure leaves open if it was executed.
[[nodiscard]] bool IsOutcomeUnknown(const absl::Status& status);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_DISPATCH_APPLY_MACHINE_H_
