#include "worker/engine/choose_tokens.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "worker/engine/verify_greedy.h"
#include "worker/engine/verify_sampled.h"

namespace kvasir {
namespace {

std::span<const float> RowOf(std::span<const float> logits, std::size_t rows, std::size_t row) {
  const std::size_t vocab = logits.size() / rows;
  return logits.subspan(row * vocab, vocab);
}

// One distribution for each row; empty where one is none.
std::vector<TokenDistribution> Distributions(std::span<const float> logits, std::size_t rows,
                                             const SamplingParameters& sampling) {
  std::vector<TokenDistribution> all;
  all.reserve(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    std::optional<TokenDistribution> its = MakeDistribution(RowOf(logits, rows, row), sampling);
    if (!its.has_value()) return {};
    all.push_back(*std::move(its));
  }
  return all;
}

}  // namespace

std::vector<TokenDistribution> DraftDistributions(std::span<const float> logits, std::int64_t rows,
                                                  double temperature) {
  return Distributions(logits, static_cast<std::size_t>(rows), {.temperature = temperature});
}

bool ChooseTokens(const SamplingParameters& sampling, std::int64_t anchor, const TargetRows& target,
                  const DraftRows& draft, SequenceOutcome& outcome) {
  const std::size_t rows = draft.tokens.size() + 1;
  KVASIR_CHECK(target.next_ids.size() == rows);
  DraftVerdict verdict;
  if (sampling.samples()) {
    const std::vector<TokenDistribution> distributions = Distributions(target.logits, rows, sampling);
    if (distributions.empty()) return false;
    verdict = VerifySampled(sampling.verify,
                            {.drafted = draft.tokens, .draft = draft.distributions, .target = distributions},
                            {.seed = sampling.seed, .anchor = anchor});
  } else {
    verdict = VerifyGreedy(draft.tokens, target.next_ids);
  }
  outcome.drafted = static_cast<std::int64_t>(draft.tokens.size());
  outcome.accepted = verdict.accepted;
  outcome.emitted = std::move(verdict.emitted);
  for (std::size_t i = 0; i < outcome.emitted.size() && sampling.logprobs; ++i) {
    const std::optional<float> logprob = LogProbability(RowOf(target.logits, rows, i), outcome.emitted[i]);
    if (!logprob.has_value()) return false;
    outcome.logprobs.push_back(*logprob);
  }
  return true;
}

}  // namespace kvasir
