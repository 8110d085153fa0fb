// A worker without the wire: which plans it holds, in which state, and what it does about events. The rules
// are the machine's (worker/engine/worker_machine.h); this class carries out its actions, keeps time, and
// watches peers.
#ifndef KVASIR_WORKER_SERVICE_WORKER_NODE_H_
#define KVASIR_WORKER_SERVICE_WORKER_NODE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/obs/clock.h"
#include "worker/engine/worker_machine.h"
#include "worker/service/leader_loop.h"
#include "worker/service/rank_group.h"

namespace kvasir {

inline constexpr std::size_t kDeploymentsMax = 256;
// A follower keeps a draining plan this much longer than it was told: rank 0's worker knows the sequences and
// ends them with PLAN_RETIRED; it must not lose a rank first. Followers free when they see it go.
inline constexpr std::int64_t kFollowerGraceMs = 2'000;

struct WorkerNodeOptions {
  WorkerResources resources;     // at least one place
  const Clock* clock = nullptr;  // outlives the node
  // A client of the worker at host:port that runs steps of the deployment.
  std::function<std::unique_ptr<StepPeer>(const std::string& address, const std::string& deployment)>
      make_peer;
  std::chrono::milliseconds tick{50};  // how often leases, drain deadlines and peers are looked at
  bool adaptive_verification = false;  // LeaderLoopOptions
};

// What GetWorkerState shows.
struct DeploymentView {
  std::string deployment;
  DeploymentState state;
  std::int64_t sequences = 0;
  std::int64_t now_ms = 0;  // of the state's times
};

class WorkerNode {
 public:
  explicit WorkerNode(WorkerNodeOptions options);
  // Ends everything (SERVER_STOPPING) and frees it.
  ~WorkerNode();
  WorkerNode(const WorkerNode&) = delete;
  WorkerNode& operator=(const WorkerNode&) = delete;

  // Blocks until the preparation has ended, here or in the call that it repeats; DEADLINE_EXPIRED at
  // `deadline` (the work goes on, and the lease frees what nobody asks for again). Errors of the machine and
  // of RankGroup::Create.
  absl::StatusOr<PrepareReport> Prepare(const PrepareSpec& spec,
                                        std::chrono::steady_clock::time_point deadline);
  absl::StatusOr<DeploymentView> Commit(const std::string& deployment, const PlanKey& key,
                                        std::chrono::milliseconds drain);
  absl::StatusOr<DeploymentView> Abort(const std::string& deployment, const PlanKey& key,
                                       const std::string& why);
  absl::StatusOr<DeploymentView> Release(const std::string& deployment, Epoch epoch,
                                         std::chrono::milliseconds drain);

  // All deployments, or the one named; memory that a state no longer names has been freed, or nearly so
  // (bounded wait).
  std::vector<DeploymentView> State(const std::string& deployment);
  [[nodiscard]] Bytes free_bytes() const;

  // A follower's part of a step. NOT_RUNNING unless the plan runs or drains here.
  absl::StatusOr<StepOutcome> ExecuteStep(const std::string& deployment, const StepPlan& step);

  // The loop that takes requests of the deployment. DEPLOYMENT_UNKNOWN; NOT_LEADER with metadata
  // leader_address; NOT_RUNNING with the failure; SERVER_STOPPING.
  absl::StatusOr<std::shared_ptr<LeaderLoop>> Leader(const std::string& deployment);
  // No new requests from now on (SERVER_STOPPING); those that run go on, and preparations are given up.
  void StopAccepting();

  [[nodiscard]] Bytes bytes_per_place() const { return options_.resources.places.front()->limit(); }
  [[nodiscard]] std::size_t places() const { return options_.resources.places.size(); }
  [[nodiscard]] const RankFacts& facts() const { return options_.resources.facts; }

 private:
  // A plan in memory, or on its way there.
  struct Hosted {
    explicit Hosted(const PrepareSpec& s) : spec(s) {}
    const PrepareSpec spec;
    std::stop_source stop;  // gives up the preparation
    bool built = false;     // the preparation has ended; `result` stands
    absl::StatusOr<PrepareReport> result = PrepareReport{};
    std::shared_ptr<RankGroup> group;
    std::unique_ptr<Scheduler> scheduler;  // of the leader, until it is activated
    std::shared_ptr<LeaderLoop> loop;
  };
  using HostedPtr = std::shared_ptr<Hosted>;
  struct Deployment {
    DeploymentState state;
    std::map<PlanKey, HostedPtr> plans;
  };
  // What has left the state under the lock, to be ended without it.
  struct Ended {
    HostedPtr plan;
    std::string reason;
    absl::Status cause;  // for its requests
    bool fail_streams = false;
  };
  using Lock = std::unique_lock<std::mutex>;
  static constexpr std::chrono::milliseconds kFreeWait{5'000};

  static absl::Status Refusal(const WorkerStep& step);
  // One event through the machine, and its actions; frees with the lock released. The verdict as a status.
  absl::Status Step(Lock& lock, const std::string& deployment, const WorkerEvent& event,
                    const absl::Status& cause = absl::OkStatus());
  void Carry(Deployment& d, const std::string& name, const WorkerAction& action, const absl::Status& cause,
             std::vector<Ended>& ended);
  void Activate(Deployment& d, const std::string& name, const PlanKey& key);
  void EndPlans(Lock& lock, const std::vector<Ended>& ended);
  absl::StatusOr<Deployment*> FindOrAdd(const std::string& deployment);
  absl::StatusOr<PrepareReport> Build(Lock& lock, const HostedPtr& plan);
  absl::StatusOr<PrepareReport> JoinPreparation(Lock& lock, const HostedPtr& plan, const PrepareSpec& spec,
                                                std::chrono::steady_clock::time_point deadline);
  bool WaitForFrees(Lock& lock, std::chrono::milliseconds limit);
  [[nodiscard]] DeploymentView ViewOf(const std::string& name, const Deployment& d) const;
  [[nodiscard]] std::int64_t FollowerGrace(const Deployment& d) const;
  [[nodiscard]] std::int64_t Now() const { return options_.clock->MonotonicMs(); }

  void KeepHouse();
  void LookAround(Lock& lock);
  void Post(const std::string& deployment, const WorkerEvent& event, const absl::Status& cause);

  const WorkerNodeOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Deployment> deployments_;
  std::int64_t freeing_ = 0;    // plans that left the state and still hold memory
  std::int64_t preparing_ = 0;  // preparations at work
  bool accepting_ = true;
  bool stopping_ = false;
  struct Posted {
    std::string deployment;
    WorkerEvent event;
    absl::Status cause;
  };
  std::vector<Posted> posted_;  // by loops' threads, for the housekeeper
  std::thread housekeeper_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_WORKER_NODE_H_
