// What a sequence emits in a step, from the target's logits and, where it speculates, from the drafted block.
// Greedy sequences take the ids that the device found; the others are sampled here, on every rank alike.
#ifndef KVASIR_WORKER_ENGINE_CHOOSE_TOKENS_H_
#define KVASIR_WORKER_ENGINE_CHOOSE_TOKENS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/step_plan.h"
#include "worker/engine/token_distribution.h"

namespace kvasir {

// The target's answer to a sequence's rows: n drafted tokens ask n + 1 rows; without a draft n is 0.
struct TargetRows {
  std::span<const std::int32_t> next_ids;  // [n + 1]: the largest logit of each
  std::span<const float> logits;           // [n + 1, vocab]; empty unless sampling.needs_logits()
};

// The drafted tokens and what they were drawn from; `distributions` is empty for a greedy sequence.
struct DraftRows {
  std::span<const std::int32_t> tokens;              // [n]
  std::span<const TokenDistribution> distributions;  // [n]
};

// Fills drafted, accepted, emitted and logprobs. The sequence's anchor, the last token before those emitted,
// stands at position `anchor`. False, a fault: logits that are no distribution; what is emitted is worthless.
[[nodiscard]] bool ChooseTokens(const SamplingParameters& sampling, std::int64_t anchor,
                                const TargetRows& target, const DraftRows& draft, SequenceOutcome& outcome);

// softmax(logits / temperature) of each row: what a draft_block drew its tokens from. Empty where a row is no
// distribution.
[[nodiscard]] std::vector<TokenDistribution> DraftDistributions(std::span<const float> logits,
                                                                std::int64_t rows, double temperature);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_CHOOSE_TOKENS_H_
