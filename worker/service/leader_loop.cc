#include "worker/service/leader_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "worker/service/run_step.h"

namespace kvasir {

absl::Status PlanRetired(const PlanKey& key, const std::string& why) {
  return MakeError({.code = absl::StatusCode::kFailedPrecondition,
                    .reason = reason::kPlanRetired,
                    .message = absl::StrFormat("plan %s of epoch %d was retired: %s; join again", key.plan_id,
                                               key.epoch.value(), why),
                    .metadata = {{"plan_id", key.plan_id}, {"epoch", std::to_string(key.epoch.value())}}});
}

LeaderLoop::LeaderLoop(LeaderLoopOptions options)
    : options_(std::move(options)), thread_([this] { Loop(); }) {}

LeaderLoop::~LeaderLoop() { Stop(PlanRetired(options_.key, "the worker frees it"), /*fail_streams=*/false); }

void LeaderLoop::Cancel(std::int64_t tag, const std::shared_ptr<DecodeSink>& sink) {
  const std::lock_guard lock(mutex_);
  commands_.emplace_back(CancelCommand{tag, sink});
  changed_.notify_all();
}

void LeaderLoop::Drop(const std::shared_ptr<DecodeSink>& sink) {
  const std::lock_guard lock(mutex_);
  commands_.emplace_back(CancelCommand{std::nullopt, sink});
  changed_.notify_all();
}

void LeaderLoop::Drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  if (closed_.ok()) closed_ = PlanRetired(options_.key, "a newer plan serves, or it was released");
  changed_.notify_all();
}

void LeaderLoop::Stop(const absl::Status& cause, bool fail_streams) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_.ok()) closed_ = cause;
    if (!stop_.has_value()) stop_ = {cause, fail_streams};
    changed_.notify_all();
  }
  const std::lock_guard join_lock(join_mutex_);
  if (!thread_.joinable()) return;
  options_.abort("the plan was stopped");
  for (const std::unique_ptr<StepPeer>& peer : options_.peers) peer->Cancel();
  thread_.join();
  // Streams may keep the loop for a while; the ranks behind it must not wait for them.
  options_.execute = nullptr;
  options_.abort = nullptr;
  options_.scheduler.reset();
  options_.peers.clear();
}

std::int64_t LeaderLoop::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

void LeaderLoop::Loop() {
  while (TakeCommands()) {
    ExpireLate();
    AdmitWaiting();
    CountJoining();
    DropSlow();
    if (std::optional<StepPlan> step = options_.scheduler->NextStep()) {
      if (options_.adaptive_verification && step->kind == StepKind::kSpeculate) {
        step->cost = costs_.Next(static_cast<std::int64_t>(step->sequences.size()));
      }
      RunStep(*step);
    }
    DropSlow();
  }
}

void LeaderLoop::CountJoining() {
  const std::lock_guard lock(mutex_);
  joining_ -= std::exchange(taken_, waiting_.size());
  joining_ += waiting_.size();
}

void LeaderLoop::DropSlow() {
  for (const std::shared_ptr<DecodeSink>& sink : std::exchange(slow_, {})) {
    Do(CancelCommand{std::nullopt, sink});
  }
}

bool LeaderLoop::TakeCommands() {
  std::vector<Command> commands;
  absl::Status retired;
  {
    std::unique_lock lock(mutex_);
    running_ = options_.scheduler->running();
    changed_.wait(lock, [this] {
      return stop_.has_value() || !commands_.empty() || running_ > 0 || !waiting_.empty() ||
             (draining_ && options_.on_drained);
    });
    if (stop_.has_value()) {
      const auto [cause, fail_streams] = *stop_;
      lock.unlock();
      EndAll(cause, fail_streams);
      return false;
    }
    commands.swap(commands_);
    taken_ += static_cast<std::size_t>(std::count_if(commands.begin(), commands.end(), [](const Command& c) {
      return std::holds_alternative<JoinCommand>(c);
    }));
    if (draining_) retired = closed_;
    if (draining_ && commands.empty() && running_ == 0 && options_.on_drained) {
      const std::function<void()> drained = std::exchange(options_.on_drained, nullptr);
      lock.unlock();
      drained();
    }
  }
  for (Command& command : commands) {
    std::visit([this](auto& c) { Do(c); }, command);
  }
  if (!retired.ok()) RefuseWaiting(retired);
  return true;
}

void LeaderLoop::Send(std::int64_t tag, const std::shared_ptr<DecodeSink>& sink,
                      decltype(DecodeEvent::what) what) {
  if (!sink->Push({tag, std::move(what)})) slow_.push_back(sink);
}

void LeaderLoop::Learn(const StepOutcome& outcome, std::chrono::nanoseconds took) {
  std::int64_t drafted = 0;
  for (const SequenceOutcome& its : outcome.sequences) drafted = std::max(drafted, its.drafted);
  costs_.Add(static_cast<std::int64_t>(outcome.sequences.size()), drafted, took.count());
}

void LeaderLoop::RunStep(const StepPlan& step) {
  const StepRunner local{options_.execute, options_.abort, options_.step_timeout};
  const std::chrono::nanoseconds begin = options_.now();
  const absl::StatusOr<StepOutcome> outcome = RunStepEverywhere(local, options_.peers, step);
  const std::chrono::nanoseconds took = options_.now() - begin;
  if (absl::IsDataLoss(outcome.status())) {
    FailSequences(outcome.status());
    return;
  }
  absl::Status failure = outcome.status();
  if (failure.ok()) {
    const absl::StatusOr<std::vector<SequenceProgress>> progress = options_.scheduler->Apply(*outcome);
    if (progress.ok()) {
      if (step.kind == StepKind::kSpeculate) Learn(*outcome, took);
      Report(step, *progress, took);
      return;
    }
    failure = progress.status();
  }
  {
    const std::lock_guard lock(mutex_);
    if (stop_.has_value()) return;  // whoever stopped the loop knows why
    closed_ = failure;
    stop_ = {failure, true};
  }
  if (options_.on_failed) options_.on_failed(failure);
}

void LeaderLoop::FailSequences(const absl::Status& cause) {
  for (const SequenceId id : options_.scheduler->FailStep()) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) continue;
    Send(found->second.join.tag, found->second.join.sink, cause);
    sessions_.erase(found);
  }
}

void LeaderLoop::Report(const StepPlan& step, const std::vector<SequenceProgress>& progress,
                        std::chrono::nanoseconds took) {
  for (const SequenceProgress& one : progress) ReportOne(step, one, took);
}

void LeaderLoop::ReportOne(const StepPlan& step, const SequenceProgress& progress,
                           std::chrono::nanoseconds took) {
  const auto found = sessions_.find(progress.id);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  RequestFinished& totals = session.totals;
  totals.emitted += static_cast<std::int64_t>(progress.tokens.size());
  totals.drafted += progress.drafted;
  totals.accepted += progress.accepted;
  if (step.kind == StepKind::kPrefill) {
    ++totals.prefill_steps;
    totals.prefill_time += took;
  } else {
    ++totals.target_steps;
    totals.target_time += took;
    totals.target_time_max = std::max(totals.target_time_max, took);
  }
  const JoinCommand& join = session.join;
  if (!progress.tokens.empty()) {
    Send(join.tag, join.sink,
         RequestTokens{progress.tokens, progress.drafted, progress.accepted, progress.logprobs});
  }
  if (!progress.finished) return;
  const std::vector<std::int32_t>& stops = join.request.stop_tokens;
  const bool stopped = std::find(stops.begin(), stops.end(), progress.tokens.back()) != stops.end();
  totals.reason = stopped ? EndReason::kStopToken : EndReason::kLength;
  Send(join.tag, join.sink, totals);
  sessions_.erase(found);
}

void LeaderLoop::EndAll(const absl::Status& cause, bool fail_streams) {
  std::vector<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
    running_ = 0;
  }
  std::map<std::shared_ptr<DecodeSink>, std::vector<std::int64_t>> open;
  for (const auto& [id, session] : sessions_) open[session.join.sink].push_back(session.join.tag);
  for (const JoinCommand& join : waiting_) open[join.sink].push_back(join.tag);
  for (const Command& command : commands) {
    const auto* join = std::get_if<JoinCommand>(&command);
    if (join != nullptr) open[join->sink].push_back(join->tag);
  }
  sessions_.clear();
  waiting_.clear();
  for (const auto& [sink, tags] : open) {
    if (fail_streams) {
      sink->Fail(tags, cause);
      continue;
    }
    for (const std::int64_t tag : tags) (void)sink->Push({tag, cause});  // a sink that is gone needs no news
  }
}

}  // namespace kvasir
