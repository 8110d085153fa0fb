#include "worker/service/worker_node.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/obs/event_log.h"

namespace kvasir {
namespace {

absl::Status NotRunning(const std::string& deployment, const std::string& what) {
  return MakeError({.code = absl::StatusCode::kFailedPrecondition,
                    .reason = reason::kNotRunning,
                    .message = absl::StrFormat("deployment %s: %s; apply a plan", deployment, what),
                    .metadata = {{"deployment", deployment}}});
}

absl::Status Stopping() {
  return MakeError({.code = absl::StatusCode::kUnavailable,
                    .reason = reason::kServerStopping,
                    .message = "the worker is stopping; use another one",
                    .retry_after_ms = 1000});
}

}  // namespace

absl::Status WorkerNode::Refusal(const WorkerStep& step) {
  if (step.verdict == WorkerVerdict::kOk) return absl::OkStatus();
  const bool fenced = step.verdict == WorkerVerdict::kStaleEpoch ||
                      step.verdict == WorkerVerdict::kEpochTaken ||
                      step.verdict == WorkerVerdict::kEpochEnded;
  return MakeError({.code = fenced ? absl::StatusCode::kAborted : absl::StatusCode::kFailedPrecondition,
                    .reason = std::string(WorkerVerdictName(step.verdict)),
                    .message = step.message,
                    .metadata = {{"max_epoch", std::to_string(step.state.max_epoch.value())}}});
}

WorkerNode::WorkerNode(WorkerNodeOptions options)
    : options_(std::move(options)), housekeeper_([this] { KeepHouse(); }) {}

WorkerNode::~WorkerNode() {
  Lock lock(mutex_);
  stopping_ = true;
  accepting_ = false;
  changed_.notify_all();
  std::vector<Ended> ended;
  for (auto& [name, deployment] : deployments_) {
    for (auto& [key, plan] : deployment.plans) {
      plan->stop.request_stop();
      if (plan->built) {
        ++freeing_;
        ended.push_back({plan, "the worker stops", Stopping(), true});
      }
    }
    std::erase_if(deployment.plans, [](const auto& entry) { return entry.second->built; });
  }
  EndPlans(lock, ended);
  changed_.wait(lock, [this] { return preparing_ == 0 && freeing_ == 0; });
  lock.unlock();
  housekeeper_.join();
}

absl::StatusOr<WorkerNode::Deployment*> WorkerNode::FindOrAdd(const std::string& deployment) {
  if (stopping_) return Stopping();
  const auto found = deployments_.find(deployment);
  if (found != deployments_.end()) return &found->second;
  if (deployments_.size() >= kDeploymentsMax) {
    return MakeError(
        {.code = absl::StatusCode::kResourceExhausted,
         .reason = reason::kServerBusy,
         .message = absl::StrFormat("the worker knows %d deployments, as many as it can; restart it",
                                    deployments_.size())});
  }
  return &deployments_[deployment];
}

absl::Status WorkerNode::Step(Lock& lock, const std::string& deployment, const WorkerEvent& event,
                              const absl::Status& cause) {
  KVASIR_ASSIGN_OR_RETURN(Deployment * d, FindOrAdd(deployment));
  WorkerStep step = StepWorker(d->state, event, Now());
  d->state = step.state;
  std::vector<Ended> ended;
  for (const WorkerAction& action : step.actions) Carry(*d, deployment, action, cause, ended);
  EndPlans(lock, ended);
  return Refusal(step);
}

void WorkerNode::Carry(Deployment& d, const std::string& name, const WorkerAction& action,
                       const absl::Status& cause, std::vector<Ended>& ended) {
  const auto found = d.plans.find(action.key);
  if (found == d.plans.end()) return;  // of a preparation that its caller has yet to enter, or has given up
  const HostedPtr plan = found->second;
  switch (action.kind) {
    case WorkerActionKind::kStartPreparing:
      break;
    case WorkerActionKind::kActivate:
      Activate(d, name, action.key);
      break;
    case WorkerActionKind::kDrain:
      if (plan->loop != nullptr) plan->loop->Drain();
      break;
    case WorkerActionKind::kFree:
      plan->stop.request_stop();
      d.plans.erase(found);
      ++freeing_;
      // A preparation at work holds its own memory and frees it when its thread ends.
      if (plan->built) {
        ended.push_back(
            {plan, action.reason, cause.ok() ? PlanRetired(action.key, action.reason) : cause, !cause.ok()});
      }
      break;
  }
  LogEvent(LogLevel::kInfo, "plan_action",
           {{"deployment", name},
            {"action", action.kind == WorkerActionKind::kStartPreparing ? "prepare"
                       : action.kind == WorkerActionKind::kActivate     ? "activate"
                       : action.kind == WorkerActionKind::kDrain        ? "drain"
                                                                        : "free"},
            {"epoch", action.key.epoch.value()},
            {"plan_id", action.key.plan_id},
            {"reason", action.reason}});
}

void WorkerNode::Activate(Deployment& d, const std::string& name, const PlanKey& key) {
  const HostedPtr& plan = d.plans.at(key);
  if (plan->scheduler == nullptr) return;  // a follower
  LeaderLoopOptions loop;
  loop.key = key;
  loop.scheduler = std::move(plan->scheduler);
  loop.drafts = plan->spec.plan.draft_tokens > 0;
  loop.adaptive_verification = options_.adaptive_verification;
  std::set<std::string> seen = {plan->spec.sites.front().worker_address};
  for (const RankSite& site : plan->spec.sites) {
    if (seen.insert(site.worker_address).second)
      loop.peers.push_back(options_.make_peer(site.worker_address, name));
  }
  // A collective takes at most comm_timeout, and a peer may notice a failure that much later.
  loop.step_timeout = 2 * plan->spec.comm_timeout + std::chrono::seconds(1);
  const std::shared_ptr<RankGroup> group = plan->group;
  loop.execute = [group](const StepPlan& step) { return group->Execute(step); };
  loop.abort = [group](const std::string& why) { group->Abort(why); };
  loop.on_drained = [this, name, key] { Post(name, DrainedEvent{key}, absl::OkStatus()); };
  loop.on_failed = [this, name, key](const absl::Status& cause) {
    Post(name, LostEvent{key, absl::StrFormat("%s: %s", ReasonOf(cause), ErrorOf(cause).message)}, cause);
  };
  plan->loop = std::make_shared<LeaderLoop>(std::move(loop));
}

void WorkerNode::EndPlans(Lock& lock, const std::vector<Ended>& ended) {
  if (ended.empty()) return;
  lock.unlock();
  for (const Ended& one : ended) {
    if (one.plan->loop != nullptr) one.plan->loop->Stop(one.cause, one.fail_streams);
    one.plan->loop.reset();
    one.plan->scheduler.reset();
    if (one.plan->group != nullptr) one.plan->group->Abort(one.reason);
    // The last user of the group frees it: a step in flight ends soon after the abort.
    std::weak_ptr<RankGroup> left = one.plan->group;
    one.plan->group.reset();
    while (!left.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  lock.lock();
  freeing_ -= static_cast<std::int64_t>(ended.size());
  changed_.notify_all();
}

bool WorkerNode::WaitForFrees(Lock& lock, std::chrono::milliseconds limit) {
  return changed_.wait_for(lock, limit, [this] { return freeing_ == 0; });
}

absl::StatusOr<DeploymentView> WorkerNode::Commit(const std::string& deployment, const PlanKey& key,
                                                  std::chrono::milliseconds drain) {
  options_.resources.faults.Reach("commit.start");
  Lock lock(mutex_);
  const auto found = deployments_.find(deployment);
  if (found != deployments_.end()) {
    const auto plan = found->second.plans.find(key);
    if (plan != found->second.plans.end() && plan->second->spec.preflight.has_value()) {
      return MakeError(
          {.code = absl::StatusCode::kFailedPrecondition,
           .reason = reason::kNotPrepared,
           .message = absl::StrFormat("epoch %d was a preflight and holds no memory; abort it and prepare "
                                      "under a higher epoch",
                                      key.epoch.value())});
    }
  }
  const std::int64_t grace = found == deployments_.end() ? 0 : FollowerGrace(found->second);
  KVASIR_RETURN_IF_ERROR(Step(lock, deployment, CommitEvent{key, drain.count() + grace}));
  return ViewOf(deployment, deployments_.at(deployment));
}

absl::StatusOr<DeploymentView> WorkerNode::Abort(const std::string& deployment, const PlanKey& key,
                                                 const std::string& why) {
  Lock lock(mutex_);
  LogEvent(LogLevel::kInfo, "abort",
           {{"deployment", deployment}, {"epoch", key.epoch.value()}, {"reason", why}});
  KVASIR_RETURN_IF_ERROR(Step(lock, deployment, AbortEvent{key}));
  return ViewOf(deployment, deployments_.at(deployment));
}

absl::StatusOr<DeploymentView> WorkerNode::Release(const std::string& deployment, Epoch epoch,
                                                   std::chrono::milliseconds drain) {
  Lock lock(mutex_);
  const auto found = deployments_.find(deployment);
  const std::int64_t grace = found == deployments_.end() ? 0 : FollowerGrace(found->second);
  KVASIR_RETURN_IF_ERROR(Step(lock, deployment, ReleaseEvent{epoch, drain.count() + grace}));
  return ViewOf(deployment, deployments_.at(deployment));
}

std::int64_t WorkerNode::FollowerGrace(const Deployment& d) const {
  if (!d.state.running.has_value()) return 0;
  const auto plan = d.plans.find(*d.state.running);
  return plan != d.plans.end() && !plan->second->spec.leads() ? kFollowerGraceMs : 0;
}

DeploymentView WorkerNode::ViewOf(const std::string& name, const Deployment& d) const {
  DeploymentView view{name, d.state, 0, Now()};
  for (const auto& [key, plan] : d.plans) view.sequences += plan->loop != nullptr ? plan->loop->running() : 0;
  return view;
}

std::vector<DeploymentView> WorkerNode::State(const std::string& deployment) {
  Lock lock(mutex_);
  (void)WaitForFrees(lock, kFreeWait);
  std::vector<DeploymentView> views;
  for (const auto& [name, d] : deployments_) {
    if (deployment.empty() || name == deployment) views.push_back(ViewOf(name, d));
  }
  return views;
}

Bytes WorkerNode::free_bytes() const {
  Bytes free;
  for (const std::shared_ptr<MemoryBudget>& place : options_.resources.places) free += place->free();
  return free;
}

absl::StatusOr<StepOutcome> WorkerNode::ExecuteStep(const std::string& deployment, const StepPlan& step) {
  std::shared_ptr<RankGroup> group;
  {
    const Lock lock(mutex_);
    const PlanKey key{step.epoch, step.plan_id};
    const auto found = deployments_.find(deployment);
    if (found == deployments_.end() || !MayExecute(found->second.state, key)) {
      const std::string failure = found == deployments_.end() ? "" : found->second.state.failure;
      return NotRunning(deployment,
                        absl::StrFormat("epoch %d of plan %s does not run here%s%s", step.epoch.value(),
                                        step.plan_id, failure.empty() ? "" : "; ", failure));
    }
    const HostedPtr& plan = found->second.plans.at(key);
    if (plan->spec.leads()) {
      return NotRunning(deployment, "this worker holds rank 0 and takes steps from its own scheduler only");
    }
    group = plan->group;
  }
  return group->Execute(step);
}

absl::StatusOr<std::shared_ptr<LeaderLoop>> WorkerNode::Leader(const std::string& deployment) {
  const Lock lock(mutex_);
  if (!accepting_) return Stopping();
  const auto found = deployments_.find(deployment);
  if (found == deployments_.end()) {
    return MakeError({.code = absl::StatusCode::kNotFound,
                      .reason = reason::kDeploymentUnknown,
                      .message = absl::StrFormat(
                          "deployment %s is not on this worker; ask the planner for its leader", deployment),
                      .metadata = {{"deployment", deployment}}});
  }
  const DeploymentState& state = found->second.state;
  if (!state.running.has_value()) {
    return NotRunning(deployment,
                      state.failure.empty() ? "no plan is committed" : "it failed: " + state.failure);
  }
  const HostedPtr& plan = found->second.plans.at(*state.running);
  if (plan->loop == nullptr) {
    const std::string& leader = plan->spec.sites.front().worker_address;
    return MakeError({.code = absl::StatusCode::kFailedPrecondition,
                      .reason = reason::kNotLeader,
                      .message = absl::StrFormat("rank 0 of deployment %s is on worker %s; decode there",
                                                 deployment, leader),
                      .metadata = {{"leader_address", leader}, {"deployment", deployment}}});
  }
  return plan->loop;
}

void WorkerNode::StopAccepting() {
  const Lock lock(mutex_);
  accepting_ = false;
  for (const auto& [name, d] : deployments_) {
    for (const auto& [key, plan] : d.plans) {
      if (!plan->built) plan->stop.request_stop();
    }
  }
}

}  // namespace kvasir
