// What the housekeeper does: events that loops posted, leases and drain deadlines, peers that are gone.
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/typed_error.h"
#include "worker/service/worker_node.h"

namespace kvasir {

void WorkerNode::Post(const std::string& deployment, const WorkerEvent& event, const absl::Status& cause) {
  const Lock lock(mutex_);
  posted_.push_back({deployment, event, cause});
  changed_.notify_all();
}

void WorkerNode::KeepHouse() {
  Lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, options_.tick, [this] { return stopping_ || !posted_.empty(); });
    if (stopping_) return;
    for (const Posted& posted : std::exchange(posted_, {})) {
      (void)Step(lock, posted.deployment, posted.event, posted.cause);
    }
    LookAround(lock);
  }
}

void WorkerNode::LookAround(Lock& lock) {
  std::vector<std::pair<std::string, PlanKey>> all;
  for (const auto& [name, d] : deployments_) {
    for (const auto& [key, plan] : d.plans) all.emplace_back(name, key);
  }
  // A step may release the lock and plans may go meanwhile, so each is looked up again.
  for (const auto& [name, key] : all) {
    const Deployment& d = deployments_.at(name);
    const auto plan = d.plans.find(key);
    if (plan == d.plans.end() || plan->second == nullptr || plan->second->group == nullptr) continue;
    const absl::Status lost = plan->second->group->CheckPeers();
    if (lost.ok() || absl::IsCancelled(lost)) continue;  // cancelled: a step failed, and its loop reports why
    (void)Step(lock, name, LostEvent{key, absl::StrFormat("%s: %s", ReasonOf(lost), ErrorOf(lost).message)},
               lost);
  }
  std::vector<std::string> names;
  names.reserve(deployments_.size());
  for (const auto& [name, d] : deployments_) names.push_back(name);
  for (const std::string& name : names) (void)Step(lock, name, TickEvent{});
}

}  // namespace kvasir
