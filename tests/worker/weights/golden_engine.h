// One rank's engine over checkpoints of tests/data, from their files to their logits: a plan is made, tensors
// are checked and read, and steps run through the paged caches. What it computes is held against logits that
// a reference left beside the checkpoint.
#ifndef KVASIR_TESTS_WORKER_WEIGHTS_GOLDEN_ENGINE_H_
#define KVASIR_TESTS_WORKER_WEIGHTS_GOLDEN_ENGINE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "worker/engine/backend.h"
#include "worker/engine/rank_engine.h"
#include "worker/engine/sequence_tables.h"

namespace kvasir::testing {

// A golden's tensors by name, F32 and I32 ones as floats.
[[nodiscard]] std::map<std::string, std::vector<float>> ReadGolden(const std::string& path);

// The largest difference as a share of the largest wanted value; infinite where sizes differ or a value is
// not finite.
[[nodiscard]] double GoldenDifference(std::span<const float> got, std::span<const float> want);

// A model and the directory of its tensors; caches have the model's type.
struct GoldenModel {
  ModelDescription model;
  std::string directory;
};

struct GoldenOptions {
  GoldenModel target;
  std::optional<GoldenModel> draft = {};
  std::int64_t draft_tokens = 0;
  std::string rollback = "auto";
  std::int64_t block_tokens = 0;   // 0: the planner chooses
  std::int64_t prefill_chunk = 0;  // tokens; the same
  std::int64_t context = 256;
};

class GoldenEngine {
 public:
  static absl::StatusOr<std::unique_ptr<GoldenEngine>> Create(const GoldenOptions& options);

  // One step of one sequence, whose first token stands at `committed`.
  absl::StatusOr<StepOutcome> Step(StepKind kind, const SequenceTable& table, std::int64_t committed,
                                   std::vector<std::int32_t> tokens);

  // The logits of every token, computed in chunks of `chunk` tokens (the plan's, or all at once), or of one:
  // by decoding.
  absl::StatusOr<std::vector<float>> LogitsOf(const std::vector<std::int32_t>& tokens, std::int64_t chunk);

  // Of a pass when it last ran; empty before.
  [[nodiscard]] const std::vector<float>& seen(Pass pass) { return seen_[pass]; }
  // Of the last drafted block.
  [[nodiscard]] const std::vector<float>& confidences() const { return confidences_; }
  [[nodiscard]] SequenceTables& tables() { return *tables_; }

 private:
  GoldenEngine() = default;

  Plan plan_;
  std::int64_t vocab_ = 0;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<SequenceTables> tables_;
  std::map<Pass, std::vector<float>> seen_;
  std::vector<float> confidences_;
  std::unique_ptr<RankEngine> engine_;
  std::int64_t steps_ = 0;
};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_WORKER_WEIGHTS_GOLDEN_ENGINE_H_
