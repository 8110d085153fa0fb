#include "worker/engine/verify_sampled.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "common/base/check.h"
#include "worker/engine/random_draw.h"

namespace kvasir {
namespace {

double ProbabilityOf(const TokenDistribution& distribution, std::int32_t token) {
  return distribution[static_cast<std::size_t>(token)];
}

// max(scale * target - draft, 0) for each token.
std::vector<double> Excess(double scale, const TokenDistribution& target, const TokenDistribution& draft) {
  KVASIR_CHECK(target.size() == draft.size());
  std::vector<double> excess(target.size());
  for (std::size_t t = 0; t < target.size(); ++t) excess[t] = std::max(scale * target[t] - draft[t], 0.0);
  return excess;
}

double SumOf(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// How many drafted tokens pass, and with which M the emitted token's distribution is made.
struct Passed {
  std::size_t accepted = 0;
  double carried = 1;
};

double AcceptDraw(const BlockDraws& draws, std::size_t i) {
  return UniformDraw({.seed = draws.seed,
                      .position = draws.anchor,
                      .purpose = DrawPurpose::kAccept,
                      .index = static_cast<std::uint32_t>(i)});
}

Passed PassStandard(const DraftedBlock& block, const BlockDraws& draws) {
  std::size_t i = 0;
  for (; i < block.drafted.size(); ++i) {
    const double p = ProbabilityOf(block.target[i], block.drafted[i]);
    const double q = ProbabilityOf(block.draft[i], block.drafted[i]);
    // u < p / q, without a division; never where p is 0.
    if (!(AcceptDraw(draws, i) * q < p)) break;
  }
  return {.accepted = i, .carried = 1};
}

Passed PassBlock(const DraftedBlock& block, const BlockDraws& draws) {
  const std::size_t n = block.drafted.size();
  Passed longest;
  double carried = 1;
  for (std::size_t i = 1; i <= n; ++i) {
    const std::int32_t token = block.drafted[i - 1];
    const double p = carried * ProbabilityOf(block.target[i - 1], token);
    const double q = ProbabilityOf(block.draft[i - 1], token);
    carried = p >= q ? (p > 0 ? 1.0 : 0.0) : p / q;
    double passes = carried;
    if (i < n) {
      const double excess = SumOf(Excess(carried, block.target[i], block.draft[i]));
      // Both terms are 0 where nothing was lost so far and the next distributions are equal.
      passes = carried >= 1 ? 1 : excess / (excess + 1 - carried);
    }
    if (AcceptDraw(draws, i - 1) < passes) longest = {.accepted = i, .carried = carried};
  }
  return longest;
}

}  // namespace

DraftVerdict VerifySampled(VerifyMethod method, const DraftedBlock& block, const BlockDraws& draws) {
  const std::size_t n = block.drafted.size();
  KVASIR_CHECK(block.draft.size() == n && block.target.size() == n + 1);
  const Passed passed = method == VerifyMethod::kBlock ? PassBlock(block, draws) : PassStandard(block, draws);
  const std::size_t a = passed.accepted;
  std::vector<double> weights = block.target[a];
  if (a < n) {
    std::vector<double> excess = Excess(passed.carried, block.target[a], block.draft[a]);
    // No excess: target and draft agree up to rounding, and what was refused was refused by rounding.
    if (SumOf(excess) > 0) weights.swap(excess);
  }
  DraftVerdict verdict{.accepted = static_cast<std::int64_t>(a)};
  verdict.emitted.assign(block.drafted.begin(), block.drafted.begin() + static_cast<std::ptrdiff_t>(a));
  verdict.emitted.push_back(
      SampleToken(weights, UniformDraw({.seed = draws.seed,
                                        .position = draws.anchor + 1 + static_cast<std::int64_t>(a),
                                        .purpose = DrawPurpose::kToken})));
  return verdict;
}

}  // namespace kvasir
