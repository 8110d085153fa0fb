#include "worker/engine/token_distribution.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "common/base/check.h"

namespace kvasir {
namespace {

// The lowest id of the largest logit; nullopt where a row is no distribution.
std::optional<std::size_t> LargestOf(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) return std::nullopt;
    if (logits[i] > logits[best]) best = i;
  }
  if (logits.empty() || !std::isfinite(logits[best])) return std::nullopt;
  return best;
}

// Larger logits first, then lower ids: a total order.
class Before {
 public:
  explicit Before(std::span<const float> logits) : logits_(logits) {}
  bool operator()(std::size_t a, std::size_t b) const {
    return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
  }

 private:
  std::span<const float> logits_;
};

// Which tokens survive the filters, in no order. `weights` are those of all tokens.
std::vector<std::size_t> Survivors(std::span<const float> logits, const SamplingParameters& sampling,
                                   const std::vector<double>& weights) {
  const Before before(logits);
  std::vector<std::size_t> kept(logits.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  const auto top_k = static_cast<std::size_t>(sampling.top_k);
  if (top_k > 0 && top_k < kept.size()) {
    std::nth_element(kept.begin(), kept.begin() + sampling.top_k - 1, kept.end(), before);
    kept.resize(top_k);
    std::sort(kept.begin(), kept.end());  // so that the sum below has one order
  }
  if (sampling.top_p >= 1) return kept;
  double total = 0;
  for (const std::size_t id : kept) total += weights[id];
  // A heap that gives the largest first: the prefix is short, and only that much is sorted.
  const auto later = [&before](std::size_t a, std::size_t b) { return before(b, a); };
  std::make_heap(kept.begin(), kept.end(), later);
  std::vector<std::size_t> prefix;
  double sum = 0;
  while (!kept.empty() && (prefix.empty() || sum < sampling.top_p * total)) {
    std::pop_heap(kept.begin(), kept.end(), later);
    prefix.push_back(kept.back());
    sum += weights[kept.back()];
    kept.pop_back();
  }
  return prefix;
}

}  // namespace

TokenDistribution OneHot(std::int32_t token, std::int64_t vocab) {
  KVASIR_CHECK(token >= 0 && token < vocab);
  TokenDistribution all(static_cast<std::size_t>(vocab));
  all[static_cast<std::size_t>(token)] = 1;
  return all;
}

std::optional<TokenDistribution> MakeDistribution(std::span<const float> logits,
                                                  const SamplingParameters& sampling) {
  const std::optional<std::size_t> largest = LargestOf(logits);
  if (!largest.has_value()) return std::nullopt;
  if (!sampling.samples()) {
    return OneHot(static_cast<std::int32_t>(*largest), static_cast<std::int64_t>(logits.size()));
  }
  const double top = logits[*largest];
  TokenDistribution all(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    all[i] = std::exp((static_cast<double>(logits[i]) - top) / sampling.temperature);
  }
  const bool cuts = sampling.top_k > 0 && static_cast<std::uint64_t>(sampling.top_k) < logits.size();
  if (cuts || sampling.top_p < 1) {
    TokenDistribution kept(logits.size());
    for (const std::size_t id : Survivors(logits, sampling, all)) kept[id] = all[id];
    all.swap(kept);
  }
  const double total = std::accumulate(all.begin(), all.end(), 0.0);
  for (double& p : all) p /= total;  // at least 1: the largest has weight 1
  return all;
}

std::int32_t SampleToken(std::span<const double> weights, double draw) {
  const double threshold = draw * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  std::size_t last = weights.size();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0)) continue;
    sum += weights[i];
    last = i;
    if (sum > threshold) break;
  }
  // The same sum in the same order ends above every threshold below it; where rounding lifted the threshold
  // to the sum itself, the last token with weight is meant.
  KVASIR_CHECK(last < weights.size());
  return static_cast<std::int32_t>(last);
}

std::optional<float> LogProbability(std::span<const float> logits, std::int32_t token) {
  KVASIR_CHECK(token >= 0 && static_cast<std::size_t>(token) < logits.size());
  const std::optional<std::size_t> largest = LargestOf(logits);
  if (!largest.has_value()) return std::nullopt;
  const double top = logits[*largest];
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - top);
  const double its = static_cast<double>(logits[static_cast<std::size_t>(token)]) - top;
  return static_cast<float>(its - std::log(total));
}

}  // namespace kvasir
