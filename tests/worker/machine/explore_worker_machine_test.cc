// Every order of events up to a depth, over two plans, three epochs and expiring times. The explorer keeps
// its own books (whose memory is held, which preparations are at work, what was activated) and compares after
// each step.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "worker/engine/worker_machine.h"

namespace kvasir {
namespace {

constexpr std::int64_t kLeaseMs = 10;
constexpr std::int64_t kDrainMs = 15;

// The machine's state and the explorer's books about it.
struct World {
  DeploymentState state;
  std::set<PlanKey> held;     // allocated by kStartPreparing, not yet given to kFree
  std::set<PlanKey> working;  // preparation threads
  Epoch activated;            // the last one
  std::int64_t now_ms = 0;
};

std::vector<WorkerEvent> Alphabet() {
  std::vector<WorkerEvent> events = {TickEvent{}};
  for (const std::int64_t epoch : {1, 2, 3}) {
    events.emplace_back(ReleaseEvent{Epoch(epoch), kDrainMs});
    for (const char* plan : {"a", "b"}) {
      const PlanKey key{Epoch(epoch), plan};
      events.emplace_back(PrepareEvent{key, kLeaseMs});
      events.emplace_back(PreparedEvent{key, true});
      events.emplace_back(PreparedEvent{key, false});
      events.emplace_back(CommitEvent{key, kDrainMs});
      events.emplace_back(AbortEvent{key});
      events.emplace_back(DrainedEvent{key});
      events.emplace_back(LostEvent{key, "lost"});
    }
  }
  return events;
}

// Keys of the state and the books, with the time left instead of times, so that equal situations are explored
// once.
std::string Fingerprint(const World& w) {
  const DeploymentState& s = w.state;
  const auto left = [&w](std::int64_t until_ms) {
    return std::to_string(std::max<std::int64_t>(0, until_ms - w.now_ms));
  };
  const auto name = [](const PlanKey& key) { return std::to_string(key.epoch.value()) + key.plan_id + ' '; };
  std::string text =
      std::to_string(s.max_epoch.value()) + s.max_epoch_plan + (s.max_epoch_ended ? "x|" : "|");
  text += (s.running ? name(*s.running) : "-") + s.failure + '|';
  if (s.draining) text += name(s.draining->key) + left(s.draining->until_ms);
  text += '|';
  if (s.pending) {
    text += name(s.pending->key) + (s.pending->ready ? "r" : "w") + left(s.pending->lease_until_ms);
  }
  text += '|' + std::to_string(w.activated.value()) + '|';
  for (const PlanKey& key : w.held) text += name(key);
  text += '|';
  for (const PlanKey& key : w.working) text += name(key);
  return text;
}

std::set<PlanKey> KeysOf(const DeploymentState& s) {
  std::set<PlanKey> keys;
  if (s.running) keys.insert(*s.running);
  if (s.draining) keys.insert(s.draining->key);
  if (s.pending) keys.insert(s.pending->key);
  return keys;
}

void ApplyActions(const WorkerStep& step, World& w) {
  for (const WorkerAction& action : step.actions) {
    switch (action.kind) {
      case WorkerActionKind::kStartPreparing:
        ASSERT_FALSE(w.held.contains(action.key)) << "prepared twice";
        ASSERT_FALSE(w.working.contains(action.key)) << "two threads at one preparation";
        w.held.insert(action.key);
        w.working.insert(action.key);
        break;
      case WorkerActionKind::kActivate:
        ASSERT_GT(action.key.epoch, w.activated) << "an older epoch was activated";
        w.activated = action.key.epoch;
        break;
      case WorkerActionKind::kDrain:
        ASSERT_TRUE(w.held.contains(action.key));
        break;
      case WorkerActionKind::kFree:
        // Freeing again what an abort gave up while its thread was at work is allowed: the thread still held
        // it.
        w.held.erase(action.key);
        break;
    }
  }
}

void CheckInvariants(const World& before, const WorkerStep& step, const World& after) {
  const DeploymentState& s = after.state;
  ASSERT_GE(s.max_epoch, before.state.max_epoch);
  ASSERT_EQ(KeysOf(s), after.held) << "memory is held by nobody, or named without being held";
  if (step.verdict != WorkerVerdict::kOk) {
    DeploymentState expired = before.state;
    if (expired.pending && !s.pending) expired.pending.reset();
    ASSERT_EQ(s, expired) << "a refusal changed more than an expired lease";
  }
  if (s.running) {
    ASSERT_LE(*s.running, (PlanKey{s.max_epoch, "~"}));
    ASSERT_TRUE(MayExecute(s, *s.running));
  }
  if (s.draining && s.running) {
    ASSERT_LT(s.draining->key.epoch, s.running->epoch);
  }
  if (s.pending) {
    ASSERT_EQ(s.pending->key.epoch, s.max_epoch);
    ASSERT_FALSE(s.max_epoch_ended);
    ASSERT_FALSE(MayExecute(s, s.pending->key));
  }
}

// A control event that succeeded succeeds again and does nothing more.
void CheckIdempotence(const WorkerEvent& event, const WorkerStep& step, std::int64_t now_ms) {
  const bool control =
      std::holds_alternative<PrepareEvent>(event) || std::holds_alternative<CommitEvent>(event) ||
      std::holds_alternative<AbortEvent>(event) || std::holds_alternative<ReleaseEvent>(event);
  if (!control || step.verdict != WorkerVerdict::kOk) return;
  const WorkerStep again = StepWorker(step.state, event, now_ms);
  ASSERT_EQ(again.verdict, WorkerVerdict::kOk) << again.message;
  ASSERT_EQ(again.state, step.state);
  ASSERT_TRUE(again.actions.empty());
}

TEST(ExploreWorkerMachineTest, EveryOrderOfEventsKeepsTheInvariants) {
  const std::vector<WorkerEvent> alphabet = Alphabet();
  std::vector<World> frontier = {World{}};
  std::set<std::string> seen = {Fingerprint(frontier.front())};
  std::size_t steps = 0;
  while (!frontier.empty()) {
    std::vector<World> next;
    for (const World& world : frontier) {
      for (const WorkerEvent& event : alphabet) {
        World after = world;
        if (const auto* done = std::get_if<PreparedEvent>(&event)) {
          if (after.working.erase(done->key) == 0) continue;  // no such thread
        }
        if (std::holds_alternative<TickEvent>(event)) after.now_ms += 8;
        const WorkerStep step = StepWorker(world.state, event, after.now_ms);
        ++steps;
        after.state = step.state;
        ASSERT_NO_FATAL_FAILURE(ApplyActions(step, after))
            << Fingerprint(world) << " event " << event.index();
        ASSERT_NO_FATAL_FAILURE(CheckInvariants(world, step, after))
            << Fingerprint(world) << " event " << event.index();
        ASSERT_NO_FATAL_FAILURE(CheckIdempotence(event, step, after.now_ms)) << Fingerprint(world);
        if (seen.insert(Fingerprint(after)).second) next.push_back(after);
      }
    }
    frontier = std::move(next);
  }
  EXPECT_GT(seen.size(), 900U);
  EXPECT_GT(steps, 30000U);
  RecordProperty("states", static_cast<int>(seen.size()));
  RecordProperty("steps", static_cast<int>(steps));
}

TEST(ExploreWorkerMachineTest, OnceNothingHappensAnyMoreOnlyTheRunningPlanRemains) {
  // From every state that three events reach, time alone frees what nobody asked for.
  const std::vector<WorkerEvent> alphabet = Alphabet();
  std::vector<DeploymentState> states = {DeploymentState{}};
  for (int depth = 0; depth < 3; ++depth) {
    const std::vector<DeploymentState> last = states;
    for (const DeploymentState& state : last) {
      for (const WorkerEvent& event : alphabet) states.push_back(StepWorker(state, event, 0).state);
    }
  }
  for (DeploymentState state : states) {
    if (state.pending && !state.pending->ready) {
      state = StepWorker(state, PreparedEvent{state.pending->key, true}, 1).state;
    }
    state = StepWorker(state, TickEvent{}, 1 + kLeaseMs + kDrainMs).state;
    ASSERT_FALSE(state.pending.has_value());
    ASSERT_FALSE(state.draining.has_value());
  }
}

}  // namespace
}  // namespace kvasir
