#include "tests/property/apply_world.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir::testing {
namespace {

constexpr char kLost[] = "PEER_UNREACHABLE";

absl::Status StatusFor(const std::string& reason) {
  if (reason.empty()) {
    return absl::OkStatus();
  }
  const absl::StatusCode code = reason == kLost ? absl::StatusCode::kUnavailable : absl::StatusCode::kAborted;
  return MakeError({.code = code, .reason = reason, .message = reason});
}

WorkerObservation ObservationOf(const DeploymentState& state) {
  WorkerObservation seen;
  seen.max_epoch = state.max_epoch;
  seen.holds_memory = state.running.has_value() || state.draining.has_value() || state.pending.has_value();
  seen.rank_count_max = 4;
  return seen;
}

void Answer(World& world, const CallAction& action, std::string reason) {
  world.replies.push_back(
      {action.worker, action.call, std::move(reason), ObservationOf(world.workers[action.worker].state)});
}

// The Prepare calls that wait for worker `w`: answered when its preparation is ready or gone.
void AnswerWaiting(World& world, std::size_t w, const std::string& reason) {
  for (const CallAction& action : std::exchange(world.workers[w].waiting, {})) {
    Answer(world, action, reason);
  }
}

void StepWorkerIn(World& world, std::size_t w, const WorkerEvent& event, std::string* verdict = nullptr) {
  WorkerStep step = StepWorker(world.workers[w].state, event, world.now_ms);
  world.workers[w].state = step.state;
  if (verdict != nullptr && step.verdict != WorkerVerdict::kOk) {
    *verdict = std::string(WorkerVerdictName(step.verdict));
  }
  if (!step.state.pending.has_value()) {
    AnswerWaiting(world, w, reason::kEpochEnded);
  }
}

// A commit leaves only while the worker's own lease, if it still has the preparation, outlives it twice.
void CheckLease(World& world, const FlyingCall& call) {
  const auto& pending = world.workers[call.action.worker].state.pending;
  if (call.action.kind == CallKind::kCommit && pending.has_value() && pending->key == call.key &&
      pending->lease_until_ms - world.now_ms <= 2 * SpecFor("", 1).times.commit_ms) {
    world.broken = "a commit was sent too late in its lease";
  }
}

// Carries out the planner's actions up to and including a persist, which is a moment of its own.
void CarryOut(World& world, std::vector<ApplyAction> actions) {
  for (ApplyAction& action : actions) {
    if (const auto* persist = std::get_if<PersistAction>(&action)) {
      world.persisting = persist->record;
    } else if (const auto* call = std::get_if<CallAction>(&action)) {
      FlyingCall flying;
      flying.action = *call;
      flying.key = PlanKey{call->epoch, world.planner->spec.plan_id};
      flying.drain_ms = world.planner->drain_ms;
      flying.life = world.workers[call->worker].life;
      CheckLease(world, flying);
      world.calls.push_back(std::move(flying));
    } else if (const auto* finish = std::get_if<FinishAction>(&action)) {
      world.finished = finish->status;
    }
  }
}

void StepPlanner(World& world, const ApplyEvent& event) {
  ApplyStep step = StepApply(*std::move(world.planner), event, world.now_ms);
  world.planner = std::move(step.state);
  CarryOut(world, std::move(step.actions));
}

void CheckCommit(const World& world, const FlyingCall& call, std::string& broken) {
  const auto& pending = world.store.pending;
  const bool durable = (pending.has_value() && pending->epoch >= call.key.epoch &&
                        (pending->phase == PendingPhase::kCommitting || pending->epoch > call.key.epoch)) ||
                       world.store.max_epoch > call.key.epoch ||
                       (world.store.serving.has_value() && world.store.serving->epoch == call.key.epoch);
  if (!durable) {
    broken = "a commit was executed before COMMITTING was durable";
  }
  if (call.action.worker == 0) {
    for (std::size_t w = 1; w < world.workers.size(); ++w) {
      const WorldWorker& other = world.workers[w];
      if (other.life == 0 && other.state.running != std::optional(call.key) && !call.answered &&
          other.state.max_epoch <= call.key.epoch) {
        broken = absl::StrFormat("rank 0's worker was committed before worker %d", w);
      }
    }
  }
}

void Deliver(World& world, std::size_t index, std::string& broken) {
  const FlyingCall call = world.calls[index];
  world.calls.erase(world.calls.begin() + static_cast<std::ptrdiff_t>(index));
  const std::size_t w = call.action.worker;
  const Epoch before = world.workers[w].state.max_epoch;
  std::string verdict;
  bool wait = false;
  switch (call.action.kind) {
    case CallKind::kQuery:
      break;
    case CallKind::kPrepare:
      StepWorkerIn(world, w, PrepareEvent{call.key, LeaseMs(SpecFor("", 1).times)}, &verdict);
      wait = verdict.empty() && world.workers[w].state.pending.has_value() &&
             !world.workers[w].state.pending->ready;
      break;
    case CallKind::kCommit: {
      const auto running = world.workers[w].state.running;
      StepWorkerIn(world, w, CommitEvent{call.key, call.drain_ms}, &verdict);
      if (verdict.empty() && running != std::optional(call.key)) {
        CheckCommit(world, call, broken);
      }
      break;
    }
    case CallKind::kAbort:
      StepWorkerIn(world, w, AbortEvent{call.key}, &verdict);
      break;
    case CallKind::kRelease:
      StepWorkerIn(world, w, ReleaseEvent{call.action.epoch, call.drain_ms}, &verdict);
      break;
  }
  if (world.workers[w].state.max_epoch < before) {
    broken = "a worker's epoch went back";
  }
  if (call.answered) {
    return;
  }
  if (wait) {
    world.workers[w].waiting.push_back(call.action);
  } else {
    Answer(world, call.action, verdict);
  }
}

void CrashWorker(World& world, std::size_t w) {
  AnswerWaiting(world, w, kLost);
  for (std::size_t i = world.calls.size(); i-- > 0;) {
    if (world.calls[i].action.worker != w) {
      continue;
    }
    if (!world.calls[i].answered) {
      Answer(world, world.calls[i].action, kLost);
    }
    world.calls.erase(world.calls.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const int life = world.workers[w].life + 1;
  world.workers[w] = WorldWorker();
  world.workers[w].life = life;
}

void CrashPlanner(World& world) {
  world.planner.reset();
  world.persisting.reset();
  world.replies.clear();
  for (FlyingCall& call : world.calls) {
    call.answered = true;
  }
  for (WorldWorker& worker : world.workers) {
    worker.waiting.clear();
  }
}

void Write(World& world) {
  world.store = *std::exchange(world.persisting, std::nullopt);
  ++world.store.version;
}

void Advance(World& world, std::int64_t ms) {
  --world.advances_left;
  world.now_ms += ms;
  for (std::size_t w = 0; w < world.workers.size(); ++w) {
    StepWorkerIn(world, w, TickEvent{});
  }
  if (world.planner.has_value() && !world.persisting.has_value() && !world.finished.has_value()) {
    StepPlanner(world, ApplyTickEvent{});
  }
}

void CheckOnePlanPerEpoch(const World& world, std::string& broken) {
  for (const WorldWorker& a : world.workers) {
    for (const WorldWorker& b : world.workers) {
      if (a.state.running.has_value() && b.state.running.has_value() &&
          a.state.running->epoch == b.state.running->epoch &&
          a.state.running->plan_id != b.state.running->plan_id) {
        broken = "two plans run under one epoch";
      }
    }
    if (a.state.max_epoch > world.store.max_epoch && !a.state.max_epoch_plan.empty()) {
      broken = "a plan was sent under an epoch that the store does not know";
    }
  }
}

}  // namespace

std::string TransitionText(const Transition& transition) {
  static constexpr const char* kNames[] = {
      "persisted",   "deliver",           "reply",         "ready",         "drained",
      "restart",     "advance",           "almost",        "lose call",     "give up call",
      "lose reply",  "preparation fails", "persist fails", "crash planner", "crash after write",
      "crash worker"};
  return absl::StrFormat("%s %d", kNames[static_cast<std::size_t>(transition.kind)], transition.index);
}

ApplySpec SpecFor(const std::string& plan_id, std::size_t workers) {
  ApplySpec spec;
  spec.plan_id = plan_id;
  spec.times.commit_ms = 1000;
  for (std::size_t w = 0; w < workers; ++w) {
    spec.workers.push_back({absl::StrFormat("w%d:1", w), {static_cast<std::int32_t>(w)}});
  }
  return spec;
}

World MakeWorld(std::size_t workers, int faults, int advances) {
  World world;
  world.store.name = "d";
  world.workers.resize(workers);
  world.faults_left = faults;
  world.advances_left = advances;
  return world;
}

void Start(World& world, const ApplyEvent& event) {
  world.planner = MakeApplyState(world.store);
  world.finished.reset();
  world.persisting.reset();
  StepPlanner(world, event);
}

std::vector<Transition> TransitionsOf(const World& world) {
  using Kind = Transition::Kind;
  std::vector<Transition> all;
  if (!world.planner.has_value()) {
    all.push_back({Kind::kRestart, 0});
  }
  if (world.persisting.has_value()) {
    all.push_back({Kind::kPersisted, 0});
  }
  for (std::size_t i = 0; i < world.calls.size(); ++i) {
    all.push_back({Kind::kDeliver, i});
  }
  for (std::size_t i = 0; i < world.replies.size() && !world.persisting.has_value(); ++i) {
    all.push_back({Kind::kReply, i});
  }
  for (std::size_t w = 0; w < world.workers.size(); ++w) {
    const DeploymentState& state = world.workers[w].state;
    if (state.pending.has_value() && !state.pending->ready) {
      all.push_back({Kind::kReady, w});
    }
    if (state.draining.has_value()) {
      all.push_back({Kind::kDrained, w});
    }
  }
  if (world.advances_left > 0) {
    all.push_back({Kind::kAdvance, 0});
    all.push_back({Kind::kAlmost, 0});
  }
  if (world.faults_left == 0 || (world.finished.has_value() && !world.persisting.has_value())) {
    return all;
  }
  for (std::size_t i = 0; i < world.calls.size(); ++i) {
    if (!world.calls[i].answered) {
      all.push_back({Kind::kLoseCall, i});
      all.push_back({Kind::kGiveUpCall, i});
    }
  }
  for (std::size_t i = 0; i < world.replies.size(); ++i) {
    if (world.replies[i].reason != kLost) {
      all.push_back({Kind::kLoseReply, i});
    }
  }
  for (std::size_t w = 0; w < world.workers.size(); ++w) {
    const auto& pending = world.workers[w].state.pending;
    if (pending.has_value() && !pending->ready) {
      all.push_back({Kind::kPreparationFails, w});
    }
    all.push_back({Kind::kCrashWorker, w});
  }
  if (world.planner.has_value()) {
    all.push_back({Kind::kCrashPlanner, 0});
    if (world.persisting.has_value()) {
      all.push_back({Kind::kCrashAfterWrite, 0});
      all.push_back({Kind::kPersistFails, 0});
    }
  }
  return all;
}

void Apply(World& world, const Transition& transition) {
  std::string& broken = world.broken;
  using Kind = Transition::Kind;
  const std::size_t i = transition.index;
  switch (transition.kind) {
    case Kind::kPersisted:
      Write(world);
      StepPlanner(world, PersistedEvent{});
      break;
    case Kind::kDeliver:
      Deliver(world, i, broken);
      break;
    case Kind::kReply: {
      const FlyingReply reply = world.replies[i];
      world.replies.erase(world.replies.begin() + static_cast<std::ptrdiff_t>(i));
      if (world.planner.has_value() && !world.finished.has_value()) {
        StepPlanner(world, ReplyEvent{reply.worker, reply.call, StatusFor(reply.reason), reply.seen});
      }
      break;
    }
    case Kind::kReady:
      StepWorkerIn(world, i, PreparedEvent{world.workers[i].state.pending->key, true});
      AnswerWaiting(world, i, "");
      break;
    case Kind::kDrained:
      StepWorkerIn(world, i, DrainedEvent{world.workers[i].state.draining->key});
      break;
    case Kind::kRestart:
      Start(world, RecoverEvent{});
      break;
    case Kind::kLoseCall:
      --world.faults_left;
      Answer(world, world.calls[i].action, kLost);
      world.calls.erase(world.calls.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    case Kind::kGiveUpCall:
      --world.faults_left;
      Answer(world, world.calls[i].action, kLost);
      world.calls[i].answered = true;
      break;
    case Kind::kLoseReply:
      --world.faults_left;
      world.replies[i].reason = kLost;
      break;
    case Kind::kPreparationFails:
      --world.faults_left;
      StepWorkerIn(world, i, PreparedEvent{world.workers[i].state.pending->key, false});
      break;
    case Kind::kPersistFails:
      --world.faults_left;
      world.persisting.reset();
      StepPlanner(world, PersistedEvent{absl::InternalError("the disk is full")});
      break;
    case Kind::kCrashAfterWrite:
      --world.faults_left;
      Write(world);
      CrashPlanner(world);
      break;
    case Kind::kCrashPlanner:
      --world.faults_left;
      CrashPlanner(world);
      break;
    case Kind::kCrashWorker:
      --world.faults_left;
      CrashWorker(world, i);
      break;
    case Kind::kAdvance:
      Advance(world, LeaseMs(SpecFor("", 1).times) * 3 / 2);
      break;
    case Kind::kAlmost:
      Advance(world, LeaseMs(SpecFor("", 1).times) - SpecFor("", 1).times.commit_ms);
      break;
  }
  CheckOnePlanPerEpoch(world, broken);
}

void RunCalmly(World& world) {
  std::string& broken = world.broken;
  world.faults_left = 0;
  world.advances_left = 0;
  for (int moves = 0; broken.empty(); ++moves) {
    const std::vector<Transition> next = TransitionsOf(world);
    if (next.empty()) {
      return;
    }
    if (moves > 10'000) {
      broken = "the world does not come to rest";
    }
    // What a worker does by itself comes first: a planner that polls it must not keep it from ever being
    // done.
    const auto own = std::find_if(next.begin(), next.end(), [](const Transition& one) {
      return one.kind == Transition::Kind::kReady || one.kind == Transition::Kind::kDrained;
    });
    Apply(world, own == next.end() ? next.front() : *own);
  }
}

}  // namespace kvasir::testing
