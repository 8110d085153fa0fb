// The planner's and the workers' machines together with a network, a store and faults: a small world in which
// every order of events can be tried. Times are coarse: they pass by leases.
#ifndef KVASIR_TESTS_PROPERTY_APPLY_WORLD_H_
#define KVASIR_TESTS_PROPERTY_APPLY_WORLD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/dispatch/apply_machine.h"
#include "worker/engine/worker_machine.h"

namespace kvasir::testing {

// A call on its way to a worker.
struct FlyingCall {
  CallAction action;
  PlanKey key;
  std::int64_t drain_ms = 0;
  bool answered =
      false;     // the planner has given it up (or its reply is on its way): nobody hears the outcome
  int life = 0;  // of the worker it was sent to: a restarted process gets no old messages
};

// A reply on its way to the planner.
struct FlyingReply {
  std::size_t worker = 0;
  std::int64_t call = 0;
  std::string reason;  // empty: ok
  WorkerObservation seen;
};

struct WorldWorker {
  DeploymentState state;
  int life = 0;
  std::vector<CallAction> waiting;  // Prepare calls that are answered when the preparation is ready
};

struct World {
  std::optional<ApplyState> planner;           // nullopt: the process is down
  std::optional<DeploymentRecord> persisting;  // on its way to the store; the planner waits
  std::optional<absl::Status> finished;
  DeploymentRecord store;
  std::vector<WorldWorker> workers;
  std::vector<FlyingCall> calls;
  std::vector<FlyingReply> replies;
  std::int64_t now_ms = 0;
  int faults_left = 0;
  int advances_left = 0;
  std::string broken;  // the first invariant that did not hold
};

struct Transition {
  enum class Kind {
    kPersisted,
    kDeliver,  // call `index` reaches its worker
    kReply,    // reply `index` reaches the planner
    kReady,    // worker `index` has finished preparing
    kDrained,  // worker `index` has no sequence of its draining plan left
    kRestart,  // the planner comes back
    kAdvance,  // more than a lease passes
    kAlmost,   // so much passes that a lease is left with less than two commits take
    // Faults.
    kLoseCall,          // call `index` never arrives
    kGiveUpCall,        // the planner gives up call `index`, which stays on its way
    kLoseReply,         // reply `index` never arrives
    kPreparationFails,  // on worker `index`
    kPersistFails,      // nothing is written
    kCrashPlanner,      // what was on its way to the store is not written
    kCrashAfterWrite,   // the planner, when its record was written and nothing else done
    kCrashWorker,       // worker `index` loses everything
  };
  Kind kind = Kind::kPersisted;
  std::size_t index = 0;
};
[[nodiscard]] std::string TransitionText(const Transition& transition);

[[nodiscard]] World MakeWorld(std::size_t workers, int faults, int advances);
void Start(World& world, const ApplyEvent& event);

// Every transition that can happen now; those that need a fault only while some are left.
[[nodiscard]] std::vector<Transition> TransitionsOf(const World& world);

// Applies one and checks the invariants that hold at every moment.
void Apply(World& world, const Transition& transition);

// Runs without faults until nothing moves.
void RunCalmly(World& world);

// Equal worlds have equal texts.
[[nodiscard]] std::string WorldText(const World& world);

[[nodiscard]] ApplySpec SpecFor(const std::string& plan_id, std::size_t workers);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_PROPERTY_APPLY_WORLD_H_
