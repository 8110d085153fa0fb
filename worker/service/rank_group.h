// This worker's ranks of one plan under one epoch: their communicators, backends and engines, one thread
// each.
#ifndef KVASIR_WORKER_SERVICE_RANK_GROUP_H_
#define KVASIR_WORKER_SERVICE_RANK_GROUP_H_

#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/comm/comm_listener.h"
#include "worker/comm/facts.h"
#include "worker/comm/rank_comms.h"
#include "worker/engine/backend.h"
#include "worker/engine/weight_source.h"
#include "worker/service/fault_points.h"
#include "worker/service/memory_budget.h"
#include "worker/service/prepare_spec.h"
#include "worker/service/rank_threads.h"
#include "worker/weights/checkpoint_weights.h"

namespace kvasir {

// What the process gives to every plan it hosts. Outlives all of them.
struct WorkerResources {
  CommListener* listener = nullptr;
  RankFacts facts;  // of the process: build, backend, libraries
  // A backend over the given communicators; `reference`: with the kernels that are the definition.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(const RankComms&, bool reference)> make_backend;
  std::vector<std::shared_ptr<MemoryBudget>> places;  // one per rank that the worker can host
  FaultPoints faults;
  std::string checkpoint_root;  // checkpoints lie below it; empty: none are read
};

class RankGroup {
 public:
  // Meets all other ranks of the plan, agrees on facts with them, and builds: in this order, so that a
  // disagreement is found before anything is allocated. With `spec.preflight` it measures, compares and frees
  // instead of keeping engines. Blocks; `stop` gives up at the next opportunity.
  //   RANKS_DISAGREE, CHECKPOINT_..., OUT_OF_MEMORY, BACKEND_UNSUPPORTED_GROUP, PREFLIGHT_FAILED; RANK_LOST
  //   or DEADLINE_EXPIRED where a peer is missing; CALL_CANCELLED after `stop`.
  static absl::StatusOr<std::unique_ptr<RankGroup>> Create(const PrepareSpec& spec,
                                                           const WorkerResources& resources,
                                                           const std::stop_token& stop);
  // Aborts what runs and frees everything.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  // One step on all local ranks; errors as RankEngine::Execute, the one that explains the others. A second
  // call while one runs is refused (STEP_OUT_OF_ORDER).
  absl::StatusOr<StepOutcome> Execute(const StepPlan& step);

  // Fails what runs and what comes, here and soon at the peers. Any thread.
  void Abort(const std::string& reason);
  // RANK_LOST once a peer has gone. Any thread.
  absl::Status CheckPeers();

  [[nodiscard]] const PrepareReport& report() const { return report_; }

 private:
  struct Member {
    std::int32_t rank = 0;
    RankComms comms;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<RankEngine> engine;
    absl::StatusOr<StepOutcome> outcome = StepOutcome{};
  };

  RankGroup(const PrepareSpec& spec, const WorkerResources& resources);
  absl::Status Meet(const std::stop_token& stop);
  absl::Status Agree();
  // Opens and checks the checkpoints, and agrees on them with the other ranks; null: the weights are
  // synthetic.
  absl::StatusOr<std::unique_ptr<const CheckpointWeights>> OpenWeights();
  absl::Status Build(const CheckpointWeights* checkpoint, const std::stop_token& stop);
  absl::Status MakeBackend(std::size_t i, Member& member);
  absl::Status BuildEngine(Member& member, const WeightSource& weights);
  absl::Status Preflight();
  // `body` on every rank's thread; the first cause. A failure aborts all communicators.
  absl::Status OnAll(const std::function<absl::Status(std::size_t, Member&)>& body);

  const PrepareSpec spec_;
  const WorkerResources& resources_;
  std::vector<Member> members_;
  PrepareReport report_;
  std::mutex step_mutex_;
  RankThreads threads_;  // last: they use everything above
};

// BACKEND_UNSUPPORTED_GROUP naming the first group of the plan that no engine runs yet.
[[nodiscard]] absl::Status CheckGroupsSupported(const Plan& plan);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_RANK_GROUP_H_
