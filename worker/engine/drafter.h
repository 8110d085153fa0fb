// The first half of a speculative step: a draft_block pass, what it drafted, and how much of it is verified.
#ifndef KVASIR_WORKER_ENGINE_DRAFTER_H_
#define KVASIR_WORKER_ENGINE_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/pass_runner.h"
#include "worker/engine/rank_engine.h"
#include "worker/engine/step_metadata.h"
#include "worker/engine/token_distribution.h"

namespace kvasir {

struct Drafts {
  std::int64_t verified = 0;                      // of each sequence at most so many; the same on every rank
  std::vector<std::vector<std::int32_t>> tokens;  // by sequence: those that are verified
  std::vector<std::vector<TokenDistribution>> distributions;  // of `tokens`; empty where it is greedy
  bool fault = false;                                         // logits that are no distribution
};

class Drafter {
 public:
  // All outlive the drafter.
  Drafter(const RankEngineOptions& options, const MetadataBuilder& builder, PassRunner& runner)
      : options_(options), builder_(builder), runner_(runner) {}
  // Before the verify pass, which overwrites the logits.
  absl::StatusOr<Drafts> Draft(const StepPlan& step);

 private:
  // The row of a draft_block that predicts sequence `index`'s first drafted token.
  [[nodiscard]] std::int64_t FirstDrafted(std::size_t index) const;
  // How many of the tokens that the pass of `shape` left are worth verifying.
  absl::StatusOr<std::int64_t> ChooseVerified(const StepPlan& step, const PassShape& shape);
  // The least of all ranks' choices: they are equal, unless a rank's numbers went wrong, and then it fails
  // with its peers at the step's end instead of meeting them in a pass of another shape.
  absl::StatusOr<std::int64_t> LeastOfRanks(std::int64_t verified);
  absl::Status ReadDistributions(const StepPlan& step, const PassShape& shape, std::size_t index,
                                 Drafts& drafts);

  const RankEngineOptions& options_;
  const MetadataBuilder& builder_;
  PassRunner& runner_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_DRAFTER_H_
