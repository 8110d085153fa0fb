#include "tests/planner/dispatch/fake_workers.h"

#include <algorithm>
#include <utility>

#include "common/base/typed_error.h"

namespace kvasir::testing {
namespace {

absl::Status Verdict(const WorkerStep& step) {
  if (step.verdict == WorkerVerdict::kOk) {
    return absl::OkStatus();
  }
  return MakeError({.code = absl::StatusCode::kAborted,
                    .reason = std::string(WorkerVerdictName(step.verdict)),
                    .message = step.message});
}

}  // namespace

FakeWorkers::FakeWorkers() : thread_([this] { Loop(); }) {}

FakeWorkers::~FakeWorkers() {
  Stop();
  thread_.join();
}

void FakeWorkers::Stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  for (Pending& pending : std::exchange(pending_, {})) {
    lock.unlock();
    pending.done({.status = absl::CancelledError("stopped")});
    lock.lock();
  }
}

void FakeWorkers::Call(const WorkerCall& call, std::function<void(WorkerReply)> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      seen_.push_back(call.kind);
      pending_.push_back({call, std::move(done)});
      changed_.notify_all();
      return;
    }
  }
  done({.status = absl::CancelledError("stopped")});
}

void FakeWorkers::SetFault(std::function<absl::Status(const WorkerCall&)> fault) {
  const std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

void FakeWorkers::Hold(CallKind kind) {
  const std::lock_guard lock(mutex_);
  held_kinds_.push_back(kind);
}

void FakeWorkers::Release() {
  const std::lock_guard lock(mutex_);
  held_kinds_.clear();
  changed_.notify_all();
}

void FakeWorkers::WaitFor(CallKind kind) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return std::find(seen_.begin(), seen_.end(), kind) != seen_.end(); });
}

DeploymentState FakeWorkers::StateOf(const std::string& deployment, const std::string& address) {
  const std::lock_guard lock(mutex_);
  return states_[{deployment, address}];
}

void FakeWorkers::Forget(const std::string& deployment, const std::string& address) {
  const std::lock_guard lock(mutex_);
  states_.erase({deployment, address});
}

void FakeWorkers::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto ready = [this] {
      return std::find_if(pending_.begin(), pending_.end(), [this](const Pending& pending) {
        return std::find(held_kinds_.begin(), held_kinds_.end(), pending.call.kind) == held_kinds_.end();
      });
    };
    changed_.wait(lock, [&] { return stopping_ || ready() != pending_.end(); });
    if (stopping_) {
      return;
    }
    const auto next = ready();
    Pending pending = std::move(*next);
    pending_.erase(next);
    WorkerReply reply = Answer(pending.call);
    lock.unlock();
    pending.done(std::move(reply));
    lock.lock();
  }
}

WorkerReply FakeWorkers::Answer(const WorkerCall& call) {
  if (fault_) {
    if (absl::Status status = fault_(call); !status.ok()) {
      return {.status = status};
    }
  }
  const PlanKey key{call.epoch, call.spec.plan_id};
  DeploymentState& state = states_[{call.deployment, call.target.address}];
  WorkerStep step{.state = state, .message = {}, .actions = {}};
  switch (call.kind) {
    case CallKind::kQuery:
      break;
    case CallKind::kPrepare:
      step = StepWorker(state, PrepareEvent{key, LeaseMs(call.spec.times)}, 0);
      if (step.verdict == WorkerVerdict::kOk && step.state.pending.has_value()) {
        step = StepWorker(step.state, PreparedEvent{key, true}, 0);
      }
      break;
    case CallKind::kCommit:
      step = StepWorker(state, CommitEvent{key, call.drain_ms}, 0);
      break;
    case CallKind::kAbort:
      step = StepWorker(state, AbortEvent{key}, 0);
      break;
    case CallKind::kRelease:
      step = StepWorker(state, ReleaseEvent{call.epoch, call.drain_ms}, 0);
      break;
  }
  if (step.state.draining.has_value()) {  // no sequences here
    step.state = StepWorker(step.state, DrainedEvent{step.state.draining->key}, 0).state;
  }
  state = step.state;
  WorkerReply reply{.status = Verdict(step)};
  reply.seen = {.max_epoch = state.max_epoch,
                .holds_memory = state.running.has_value() || state.pending.has_value(),
                .comm_host = "localhost",
                .comm_port = 1,
                .rank_count_max = 16};
  reply.running_epoch = state.running.has_value() ? state.running->epoch : Epoch(0);
  if (call.kind == CallKind::kPrepare) {
    for (const std::int32_t rank : call.target.ranks) {
      reply.prepared.add_measurements()->set_rank(rank);
    }
  }
  return reply;
}

}  // namespace kvasir::testing
