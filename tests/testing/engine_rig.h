// A whole deployment in one test: a scheduler, and one engine with its CPU backend per rank, ranks as
// threads. Arenas start full of NaN outside the null parent, and block-table columns that no row may look at
// hold absurd ids: whatever reads what it should not read shows at once.
#ifndef KVASIR_TESTS_TESTING_ENGINE_RIG_H_
#define KVASIR_TESTS_TESTING_ENGINE_RIG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "tests/testing/fault_backend.h"
#include "tests/testing/thread_ranks.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/engine/rank_engine.h"
#include "worker/engine/scheduler.h"

namespace kvasir::testing {

inline constexpr std::int64_t kAbsurdBlock = std::int64_t{1} << 40;

struct EngineRigOptions {
  Plan plan;
  bool use_graphs = true;
  std::int64_t weight_seed = 1;
  CpuKernels kernels = CpuKernels::kFast;
  // Another backend than the CPU's, of a rank with these groups.
  std::function<std::unique_ptr<Backend>(Communicator* tensor, Communicator* context)> make_backend = {};
  // Not 0: engines see every block id renamed by a permutation of parents and of the blocks inside them.
  std::int64_t shuffle_seed = 0;
  // Not empty: given to the steps in turn.
  std::vector<StepCost> costs = {};
  // Called on every rank, so it must give the same answer each time.
  std::function<void(const StepPlan&, std::span<std::int32_t>)> draft_override = {};
  // Called on every rank's thread.
  std::function<void(std::int64_t rank, const PassMetadata&, std::span<const float>)> observe_pass = {};
};

using Tokens32 = std::vector<std::int32_t>;

class EngineRig {
 public:
  static absl::StatusOr<std::unique_ptr<EngineRig>> Create(const EngineRigOptions& options);

  [[nodiscard]] Scheduler& scheduler() { return *scheduler_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] std::int64_t ranks() const { return static_cast<std::int64_t>(members_.size()); }
  [[nodiscard]] RankEngine& engine(std::int64_t rank) { return *At(rank).engine; }
  [[nodiscard]] FaultBackend& backend(std::int64_t rank) { return *At(rank).backend; }

  // One step on all ranks, each rank's own answer.
  [[nodiscard]] std::vector<absl::StatusOr<StepOutcome>> ExecuteOnAll(const StepPlan& step);
  // NextStep, Execute everywhere, Apply. nullopt when there is nothing to do. An error of any rank, or
  // Internal if ranks answer differently; the step is then left to the caller (scheduler().FailStep()).
  absl::StatusOr<std::optional<std::vector<SequenceProgress>>> Step();
  // Steps until nothing is left; the tokens of each sequence since it joined.
  absl::StatusOr<std::map<SequenceId, Tokens32>> Drain();
  // What Step and Drain have seen so far.
  [[nodiscard]] const std::map<SequenceId, Tokens32>& tokens() const { return tokens_; }
  [[nodiscard]] std::int64_t drafted() const { return drafted_; }
  [[nodiscard]] std::int64_t accepted() const { return accepted_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  // The step that Step executed last, as the engines saw it.
  [[nodiscard]] const StepPlan& last_step() const { return last_step_; }

  // Fills every page of a sequence's blocks of `role`'s layers, or of those with one mixer, on one rank with
  // NaN.
  void PlantNan(std::int64_t rank, const StepSequence& sequence, Role role,
                std::optional<Mixer> mixer = std::nullopt);

 private:
  struct Member {
    std::unique_ptr<Backend> device;
    std::unique_ptr<FaultBackend> backend;
    std::unique_ptr<RankEngine> engine;
  };
  EngineRig() = default;
  [[nodiscard]] Member& At(std::int64_t rank) { return members_[static_cast<std::size_t>(rank)]; }
  absl::Status AddRank(const EngineRigOptions& options, std::int64_t rank);
  void ShuffleParents(std::int64_t seed);
  void RenameBlocks(StepPlan& step) const;

  Plan plan_;
  std::vector<StepCost> costs_;
  std::vector<std::int64_t> parent_names_;  // by parent; empty without a shuffle
  std::unique_ptr<ThreadGroup> tensor_;
  std::vector<std::unique_ptr<ThreadGroup>> context_;
  std::vector<Member> members_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<SequenceId, Tokens32> tokens_;
  std::int64_t drafted_ = 0;
  std::int64_t accepted_ = 0;
  std::int64_t steps_ = 0;
  StepPlan last_step_;
};

// Joins one request per prompt and drains; the tokens in the prompts' order.
absl::StatusOr<std::vector<Tokens32>> DecodeAll(EngineRig& rig, const std::vector<Tokens32>& prompts,
                                                std::int64_t max_tokens, bool speculate);

// `length` tokens that depend on `seed` only, below the small vocabulary and never the mask token.
[[nodiscard]] Tokens32 MakePrompt(std::int64_t length, std::int64_t seed);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_ENGINE_RIG_H_
