// How the dispatcher carries out what a machine decides.
#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/typed_error.h"
#include "common/obs/event_log.h"
#include "planner/dispatch/dispatcher.h"

namespace kvasir {
namespace {

// The host of a worker's address, where it does not name one for its collectives.
std::string CommHost(const WorkerSlot& slot) {
  const std::string& host = slot.seen.comm_host;
  if (!host.empty() && host != "0.0.0.0" && host != "::") {
    return host;
  }
  const std::string& address = slot.target.address;
  return address.substr(0, address.rfind(':'));
}

}  // namespace

void Dispatcher::Step(const std::string& name, Run& run, const ApplyEvent& event) {
  ApplyStep step = StepApply(std::move(run.state), event, clock_.MonotonicMs());
  run.state = std::move(step.state);
  for (const ApplyAction& action : step.actions) {
    std::visit([&](const auto& a) { CarryOut(name, run, a); }, action);
  }
}

void Dispatcher::CarryOut(const std::string& name, Run& run, const PersistAction& action) {
  DeploymentRecord record = action.record;
  record.update_wall_ms = clock_.WallMs();
  run.state.record.update_wall_ms = record.update_wall_ms;
  const absl::Status status = store_.Put(record);
  if (!status.ok()) {
    LogEvent(LogLevel::kError, "store_failed",
             {{"deployment", name}, {"error", std::string(status.message())}});
  }
  Step(name, run, PersistedEvent{status});
}

void Dispatcher::CarryOut(const std::string& name, Run& run, const CallAction& action) {
  Timer timer{name, run.id, action, MakeCall(name, run, action)};
  if (action.delay_ms > 0) {
    timers_.emplace(clock_.MonotonicMs() + action.delay_ms, std::move(timer));
  } else {
    SendCall(timer);
  }
}

void Dispatcher::CarryOut(const std::string& name, Run& run, const ReportAction& action) {
  ApplyProgress progress{.elapsed_ms = clock_.MonotonicMs() - run.started_ms,
                         .epoch = run.state.epoch,
                         .kind = action.kind,
                         .phase = run.state.phase};
  if (action.kind != ReportKind::kPhase) {
    progress.worker_address = run.state.workers[action.worker].target.address;
  }
  if (action.kind == ReportKind::kPrepared) {
    progress.prepared = run.prepared[action.worker];
  }
  static constexpr const char* kEvents[] = {"apply_phase", "worker_prepared", "worker_committed"};
  LogEvent(LogLevel::kInfo, kEvents[static_cast<std::size_t>(action.kind)],
           {{"deployment", name},
            {"epoch", progress.epoch.value()},
            {"phase", ApplyPhaseName(progress.phase)},
            {"worker", progress.worker_address}});
  for (const ApplyListener& listener : run.listeners) {
    if (listener.progress) {
      listener.progress(progress);
    }
  }
}

void Dispatcher::CarryOut(const std::string& name, Run& run, const FinishAction& action) {
  ApplyEnd end{.status = action.status, .view = {run.state.record, run.state.phase}};
  end.view.phase = ApplyPhase::kIdle;
  end.elapsed_ms = clock_.MonotonicMs() - run.started_ms;
  for (const WorkerSlot& slot : run.state.workers) {
    if (slot.unreachable) {
      end.unreachable.push_back(slot.target.address);
    }
  }
  LogEvent(action.status.ok() ? LogLevel::kInfo : LogLevel::kWarning, "apply_finished",
           {{"deployment", name},
            {"epoch", run.state.epoch.value()},
            {"elapsed_ms", end.elapsed_ms},
            {"reason", ReasonOf(action.status)},
            {"message", std::string(action.status.message())}});
  if (action.status.ok() && !run.request_id.empty()) {
    last_[name] = {run.request_id, end};
  }
  for (const ApplyListener& listener : run.listeners) {
    listener.done(end);
  }
  run.listeners.clear();
}

WorkerCall Dispatcher::MakeCall(const std::string& name, const Run& run, const CallAction& action) const {
  const ApplyState& state = run.state;
  WorkerCall call{.deployment = name,
                  .target = state.workers[action.worker].target,
                  .kind = action.kind,
                  .epoch = action.epoch,
                  .spec = state.spec,
                  .mode = run.mode,
                  .preflight = run.preflight,
                  .drain_ms = state.drain_ms,
                  .timeout_ms = action.timeout_ms};
  if (action.kind != CallKind::kPrepare) {
    return call;
  }
  for (const WorkerSlot& slot : state.workers) {
    for (const std::int32_t rank : slot.member ? slot.target.ranks : std::vector<std::int32_t>()) {
      call.rank_map.push_back({rank, slot.target.address, CommHost(slot), slot.seen.comm_port});
    }
  }
  std::sort(call.rank_map.begin(), call.rank_map.end(),
            [](const RankHome& a, const RankHome& b) { return a.rank < b.rank; });
  return call;
}

void Dispatcher::SendCall(const Timer& timer) {
  caller_.Call(
      timer.call, [this, name = timer.name, run = timer.run, action = timer.action](WorkerReply reply) {
        Item item{name, run, ReplyEvent{action.worker, action.call, reply.status, reply.seen}, std::nullopt};
        if (action.kind == CallKind::kPrepare && reply.status.ok()) {
          item.prepared.emplace(action.worker, std::move(reply.prepared));
        }
        Put(std::move(item));
      });
}

void Dispatcher::FireTimers(std::int64_t now_ms) {
  while (!timers_.empty() && timers_.begin()->first <= now_ms) {
    const Timer timer = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    const auto run = runs_.find(timer.name);
    // A call that the machine has given up meanwhile must not be sent any more.
    if (run != runs_.end() && run->second.id == timer.run &&
        timer.action.worker < run->second.state.workers.size() &&
        run->second.state.workers[timer.action.worker].call == timer.action.call) {
      SendCall(timer);
    }
  }
}

void Dispatcher::Tick(std::int64_t now_ms) {
  if (now_ms < next_tick_ms_) {
    return;
  }
  next_tick_ms_ = now_ms + kTickMs;
  for (auto& [name, run] : runs_) {
    if (run.state.phase != ApplyPhase::kIdle) {
      Step(name, run, ApplyTickEvent{});
    }
  }
}

}  // namespace kvasir
