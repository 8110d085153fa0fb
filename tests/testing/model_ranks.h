// All ranks of a small target and draft in one test, without planner or engine: a plan made by hand, one CPU
// backend and arena per rank, and metadata from the formulas of DESIGN section 2.2. Ranks run as threads.
// Every arena starts full of NaN outside the null parent, and unused table entries hold absurd ids.
#ifndef KVASIR_TESTS_TESTING_MODEL_RANKS_H_
#define KVASIR_TESTS_TESTING_MODEL_RANKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "common/plan/plan.h"
#include "tests/testing/thread_ranks.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/engine/model_pass.h"

namespace kvasir::testing {

struct ModelRanksOptions {
  ModelDescription target;
  std::optional<ModelDescription> draft;
  Topology topology;
  std::int64_t block_tokens = 16;
  std::int64_t blocks = 64;  // of the pool, the null block included
  std::int64_t rows_max = 64;
  DType dtype = DType::kBf16;
  std::int64_t seed = 1;
  const WeightSource* weights = nullptr;  // null: synthetic, of `seed`
  CpuKernels kernels = CpuKernels::kFast;
  bool replay =
      false;  // captures a graph per shape on first use, destroys its list, and replays it from then on
};

// One request of a pass: `tokens.size()` rows at position, position + 1, ...; the first `valid` are real, the
// others padding. `blocks` is the sequence's block table.
struct PassRequest {
  std::vector<std::int32_t> tokens;
  std::int64_t position = 0;
  std::int64_t valid = 0;
  std::vector<std::int64_t> blocks;
};

// A pass over requests with equal numbers of rows. `causal` overrides nothing: it is what the metadata
// builder uses. `bound_shift` plants the fault of a bound that is off by so many tokens.
struct PassCall {
  Pass pass = Pass::kTargetDecode;
  std::vector<PassRequest> requests;
  bool causal = true;
  std::int64_t bound_shift = 0;
};

struct PassResult {
  std::vector<float> logits;           // [rows, vocab]
  std::vector<std::int32_t> next_ids;  // [rows]
  std::vector<std::int32_t> drafted;   // [rows]
  std::vector<float> confidences;      // [rows]
  bool fault = false;                  // on any rank
};

class ModelRanks {
 public:
  static absl::StatusOr<std::unique_ptr<ModelRanks>> Create(const ModelRanksOptions& options);
  ~ModelRanks();

  // Rank 0's results, after checking that all ranks have the same. Taps stay on the ranks for the next
  // kDraftContext pass of the same rows.
  absl::StatusOr<PassResult> Run(const PassCall& call);
  // The taps of the last target pass, of rank 0: [rows, taps * hidden].
  [[nodiscard]] std::vector<float> Taps(std::int64_t rows) const;
  // NaN into every element of the slot that holds `position` of a sequence, on the rank that owns it.
  void PoisonToken(const std::vector<std::int64_t>& blocks, std::int64_t position);
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const RankModel& model(std::int64_t rank) const;

 private:
  struct Member;
  struct Inputs;
  ModelRanks() = default;
  absl::Status AddRank(const ModelRanksOptions& options, std::int64_t rank);
  absl::Status RunOn(Member& member, const PassCall& call) const;
  // Rewrites every entry in place, so that addresses stay what a graph has captured.
  void WriteMetadata(const RankPlace& place, const PassCall& call, Inputs& inputs) const;
  [[nodiscard]] LaunchList BuildList(Member& member, const PassShape& shape, Inputs& inputs) const;

  ModelRanksOptions options_;
  Plan plan_;
  std::unique_ptr<ThreadGroup> tensor_;
  std::vector<std::unique_ptr<ThreadGroup>> context_;
  std::vector<std::unique_ptr<Member>> members_;
};

// A pool "tokens" with a target group and, with a draft, a draft group, packed layer after layer.
[[nodiscard]] Plan HandMadePlan(const ModelRanksOptions& options);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_MODEL_RANKS_H_
