// Preparing: the plan's memory, ranks and graphs, built once however often the call is repeated.
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/obs/event_log.h"
#include "worker/service/worker_node.h"

namespace kvasir {
namespace {

absl::Status TooLate() {
  return MakeError({.code = absl::StatusCode::kDeadlineExceeded,
                    .reason = reason::kDeadlineExpired,
                    .message = "the preparation is still at work; ask again"});
}

// The same work: a repeated call must not mean something else.
bool SameWork(const PrepareSpec& a, const PrepareSpec& b) {
  return a.ranks == b.ranks && a.sites == b.sites && a.weight_seed == b.weight_seed &&
         a.target_checkpoint == b.target_checkpoint && a.draft_checkpoint == b.draft_checkpoint &&
         a.preflight == b.preflight;
}

}  // namespace

absl::StatusOr<PrepareReport> WorkerNode::Prepare(const PrepareSpec& spec,
                                                  std::chrono::steady_clock::time_point deadline) {
  Lock lock(mutex_);
  KVASIR_ASSIGN_OR_RETURN(Deployment * d, FindOrAdd(spec.deployment));
  const auto known = d->plans.find(spec.key);
  if (known != d->plans.end() && !SameWork(known->second->spec, spec)) {
    return MakeError(
        {.code = absl::StatusCode::kAborted,
         .reason = reason::kEpochTaken,
         .message = absl::StrFormat("epoch %d is prepared here with other ranks, addresses, weights or "
                                    "preflight options; take a higher epoch",
                                    spec.key.epoch.value())});
  }
  KVASIR_RETURN_IF_ERROR(Step(lock, spec.deployment, PrepareEvent{spec.key, spec.lease.count()}));
  // The step may have freed plans with the lock released meanwhile: look again.
  d = &deployments_.at(spec.deployment);
  if (!Holds(d->state, spec.key))
    return Refusal({d->state, WorkerVerdict::kEpochEnded, "overtaken by another call", {}});
  const auto [entry, added] = d->plans.emplace(spec.key, nullptr);
  if (!added) return JoinPreparation(lock, entry->second, spec, deadline);
  entry->second = std::make_shared<Hosted>(spec);
  const HostedPtr plan = entry->second;
  return Build(lock, plan);
}

absl::StatusOr<PrepareReport> WorkerNode::JoinPreparation(Lock& lock, const HostedPtr& plan,
                                                          const PrepareSpec& spec,
                                                          std::chrono::steady_clock::time_point deadline) {
  if (!SameWork(plan->spec, spec))
    return Refusal({{}, WorkerVerdict::kEpochTaken, "overtaken by another call", {}});
  if (!changed_.wait_until(lock, deadline, [&] { return plan->built; })) return TooLate();
  return plan->result;
}

absl::StatusOr<PrepareReport> WorkerNode::Build(Lock& lock, const HostedPtr& plan) {
  const PrepareSpec& spec = plan->spec;
  ++preparing_;
  (void)WaitForFrees(lock, kFreeWait);  // what is being freed may be what this plan needs
  lock.unlock();
  LogEvent(
      LogLevel::kInfo, "prepare_start",
      {{"deployment", spec.deployment}, {"epoch", spec.key.epoch.value()}, {"plan_id", spec.key.plan_id}});
  absl::StatusOr<std::unique_ptr<RankGroup>> group =
      RankGroup::Create(spec, options_.resources, plan->stop.get_token());
  absl::StatusOr<std::unique_ptr<Scheduler>> scheduler(nullptr);
  if (group.ok() && spec.leads()) {
    scheduler = Scheduler::Create(spec.plan, spec.key.plan_id, spec.key.epoch, spec.target.vocab);
  }
  const absl::Status status = group.ok() ? scheduler.status() : group.status();
  LogEvent(status.ok() ? LogLevel::kInfo : LogLevel::kWarning, "prepare_end",
           {{"deployment", spec.deployment},
            {"epoch", spec.key.epoch.value()},
            {"reason", status.ok() ? std::string("ok") : ReasonOf(status)},
            {"message", status.ok() ? std::string() : ErrorOf(status).message}});
  if (!status.ok() && group.ok()) group->reset();
  lock.lock();
  plan->built = true;
  plan->result = status.ok() ? absl::StatusOr<PrepareReport>((*group)->report()) : status;
  Deployment& d = deployments_.at(spec.deployment);
  const auto entry = d.plans.find(spec.key);
  const bool given_up = entry == d.plans.end() || entry->second != plan;
  if (status.ok() && (given_up || stopping_)) {
    plan->result = MakeError({.code = absl::StatusCode::kAborted,
                              .reason = reason::kEpochEnded,
                              .message = "the preparation was aborted, or overtaken by a higher epoch"});
    lock.unlock();
    group->reset();
    lock.lock();
  } else if (status.ok()) {
    plan->group = *std::move(group);
    plan->scheduler = *std::move(scheduler);
  }
  if (given_up) --freeing_;  // counted since the plan left the state
  const absl::StatusOr<PrepareReport> result = plan->result;
  if (!given_up && !stopping_) (void)Step(lock, spec.deployment, PreparedEvent{spec.key, result.ok()});
  --preparing_;
  changed_.notify_all();
  return result;
}

}  // namespace kvasir
