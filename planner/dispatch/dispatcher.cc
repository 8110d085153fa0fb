#include "planner/dispatch/dispatcher.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/obs/event_log.h"

namespace kvasir {
namespace {

constexpr std::int64_t kIdleWaitMs = 3'600'000;  // an event ends it

absl::Status UnknownDeployment(const std::string& name) {
  return MakeError(
      {.code = absl::StatusCode::kNotFound,
       .reason = reason::kDeploymentUnknown,
       .message = absl::StrFormat("there is no deployment \"%s\"; apply a plan under this name first", name),
       .field = "deployment",
       .metadata = {{"deployment", name}}});
}

DeploymentView ViewOf(const ApplyState& state) { return {state.record, state.phase}; }

}  // namespace

Dispatcher::Dispatcher(DeploymentStore& store, WorkerCaller& caller, const Clock& clock)
    : store_(store), caller_(caller), clock_(clock), thread_([this] { Loop(); }) {}

Dispatcher::~Dispatcher() { Stop(); }

absl::Status Dispatcher::Recover() {
  KVASIR_ASSIGN_OR_RETURN(const std::vector<DeploymentRecord> records, store_.List());
  const std::lock_guard lock(mutex_);
  for (const DeploymentRecord& record : records) {
    if (record.pending.has_value() && !runs_.contains(record.name)) {
      LogEvent(LogLevel::kWarning, "apply_recovered",
               {{"deployment", record.name},
                {"epoch", record.pending->epoch.value()},
                {"phase", PendingPhaseName(record.pending->phase)}});
      StartRun(record.name, record, RecoverEvent{}).request_id = record.pending->request_id;
    }
  }
  return absl::OkStatus();
}

absl::Status Dispatcher::Apply(const std::string& name, const StartApplyEvent& event,
                               const std::optional<PreflightSettings>& preflight, ApplyListener listener) {
  const std::lock_guard lock(mutex_);
  if (!event.request_id.empty()) {
    if (const auto run = runs_.find(name); run != runs_.end() && run->second.request_id == event.request_id) {
      run->second.listeners.push_back(std::move(listener));
      return absl::OkStatus();
    }
    if (const auto last = last_.find(name); last != last_.end() && last->second.first == event.request_id) {
      listener.done(last->second.second);
      return absl::OkStatus();
    }
  }
  KVASIR_ASSIGN_OR_RETURN(const DeploymentRecord record, LoadIdle(name));
  LogEvent(LogLevel::kInfo, "apply_started",
           {{"deployment", name},
            {"plan_id", event.spec.plan_id},
            {"workers", event.spec.workers.size()},
            {"preflight", event.preflight}});
  Run& run = StartRun(name, record, event);
  run.mode = event.mode;
  run.preflight = preflight;
  run.request_id = event.request_id;
  run.listeners.push_back(std::move(listener));
  return absl::OkStatus();
}

absl::Status Dispatcher::Delete(const std::string& name, std::int64_t drain_ms, ApplyListener listener) {
  const std::lock_guard lock(mutex_);
  KVASIR_ASSIGN_OR_RETURN(const DeploymentRecord record, LoadIdle(name));
  if (record.version == 0 || record.deleted) {
    return UnknownDeployment(name);
  }
  LogEvent(LogLevel::kInfo, "delete_started", {{"deployment", name}});
  StartRun(name, record, StartDeleteEvent{drain_ms}).listeners.push_back(std::move(listener));
  last_.erase(name);
  return absl::OkStatus();
}

absl::StatusOr<DeploymentView> Dispatcher::Get(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto run = runs_.find(name); run != runs_.end()) {
    return ViewOf(run->second.state);
  }
  KVASIR_ASSIGN_OR_RETURN(std::optional<DeploymentRecord> record, store_.Get(name));
  if (!record.has_value() || record->deleted) {
    return UnknownDeployment(name);
  }
  return DeploymentView{*std::move(record), ApplyPhase::kIdle};
}

bool Dispatcher::WaitIdle(std::int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return runs_.empty(); });
}

void Dispatcher::Stop() {
  {
    const std::lock_guard inbox(inbox_mutex_);
    stopping_ = true;
    inbox_changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
  caller_.Stop();
  const std::lock_guard lock(mutex_);
  for (auto& [name, run] : runs_) {
    const ApplyEnd end{
        .status = MakeError({.code = absl::StatusCode::kUnavailable,
                             .reason = reason::kServerStopping,
                             .message = "the planner stops; it takes the apply up when it is back, and "
                                        "GetDeployment then says how it ended"}),
        .view = ViewOf(run.state)};
    for (const ApplyListener& listener : run.listeners) {
      listener.done(end);
    }
  }
  runs_.clear();
}

absl::StatusOr<DeploymentRecord> Dispatcher::LoadIdle(const std::string& name) {
  if (stopping()) {
    return MakeError({.code = absl::StatusCode::kUnavailable,
                      .reason = reason::kServerStopping,
                      .message = "the planner stops and starts nothing more",
                      .retry_after_ms = 1000});
  }
  if (runs_.contains(name)) {
    return InProgress(name);
  }
  KVASIR_ASSIGN_OR_RETURN(const std::optional<DeploymentRecord> record, store_.Get(name));
  if (!record.has_value()) {
    return DeploymentRecord{.name = name};
  }
  if (record->pending.has_value()) {
    // Its end could not be stored: it is taken up where it stands before anything else starts.
    StartRun(name, *record, RecoverEvent{});
    return InProgress(name);
  }
  return *record;
}

Dispatcher::Run& Dispatcher::StartRun(const std::string& name, const DeploymentRecord& record,
                                      const ApplyEvent& event) {
  Run& run = runs_[name];
  run.id = ++runs_started_;
  run.state = MakeApplyState(record);
  run.started_ms = clock_.MonotonicMs();
  Put({name, run.id, event, std::nullopt});
  return run;
}

absl::Status Dispatcher::InProgress(const std::string& name) const {
  const ApplyState& state = runs_.at(name).state;
  return MakeError(
      {.code = absl::StatusCode::kAborted,
       .reason = reason::kApplyInProgress,
       .message = absl::StrFormat("deployment %s is %s; wait until that has ended (GetDeployment shows it)",
                                  name, ApplyPhaseName(state.phase)),
       .field = "deployment",
       .metadata = {{"deployment", name}, {"phase", std::string(ApplyPhaseName(state.phase))}},
       .retry_after_ms = 1000});
}

void Dispatcher::Loop() {
  std::int64_t wait_ms = kIdleWaitMs;
  while (!stopping()) {
    std::optional<Item> item = NextItem(wait_ms);
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ms = clock_.MonotonicMs();
    FireTimers(now_ms);
    Tick(now_ms);
    if (item.has_value()) {
      Take(*std::move(item));
    }
    const std::int64_t next_ms =
        timers_.empty() ? next_tick_ms_ : std::min(next_tick_ms_, timers_.begin()->first);
    wait_ms = runs_.empty() ? kIdleWaitMs : std::clamp<std::int64_t>(next_ms - now_ms, 0, kTickMs);
  }
}

std::optional<Dispatcher::Item> Dispatcher::NextItem(std::int64_t wait_ms) {
  std::unique_lock inbox(inbox_mutex_);
  inbox_changed_.wait_for(inbox, std::chrono::milliseconds(wait_ms),
                          [this] { return stopping_ || !inbox_.empty(); });
  if (stopping_ || inbox_.empty()) {
    return std::nullopt;
  }
  Item item = std::move(inbox_.front());
  inbox_.pop_front();
  return item;
}

void Dispatcher::Put(Item item) {
  const std::lock_guard inbox(inbox_mutex_);
  inbox_.push_back(std::move(item));
  inbox_changed_.notify_all();
}

bool Dispatcher::stopping() {
  const std::lock_guard inbox(inbox_mutex_);
  return stopping_;
}

void Dispatcher::Take(Item item) {
  const auto run = runs_.find(item.name);
  if (run == runs_.end() || run->second.id != item.run) {
    return;  // the machine has ended
  }
  if (item.prepared.has_value()) {
    run->second.prepared[item.prepared->first] = std::move(item.prepared->second);
  }
  Step(item.name, run->second, item.event);
  if (run->second.state.phase == ApplyPhase::kFinished) {
    runs_.erase(run);
    idle_.notify_all();
  }
}

}  // namespace kvasir
