// From a row of logits to a distribution over tokens, and from a distribution and a draw to a token. Pure, in
// double precision, every sum in a fixed order: all ranks get the same bits from the same logits.
#ifndef KVASIR_WORKER_ENGINE_TOKEN_DISTRIBUTION_H_
#define KVASIR_WORKER_ENGINE_TOKEN_DISTRIBUTION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "worker/engine/sampling_parameters.h"

namespace kvasir {

// [vocab], not negative; sums to 1 up to rounding.
using TokenDistribution = std::vector<double>;

// In this order: divide by the temperature; keep the top_k largest; of those, in descending order, keep the
// shortest prefix that has at least top_p of their probability (at least one token); renormalise. Among equal
// logits the lower id counts as the larger. Temperature 0: all on the largest, the filters do nothing.
// nullopt, a fault: a logit is NaN or +inf, or none is above -inf.
[[nodiscard]] std::optional<TokenDistribution> MakeDistribution(std::span<const float> logits,
                                                                const SamplingParameters& sampling);

// All probability on one token.
[[nodiscard]] TokenDistribution OneHot(std::int32_t token, std::int64_t vocab);

// The first id, ascending, at which the running sum of `weights` exceeds `draw` (in [0, 1)) times their sum.
// Never a token of weight 0. Weights need not sum to 1; at least one is positive.
[[nodiscard]] std::int32_t SampleToken(std::span<const double> weights, double draw);

// log softmax(logits)[token]: natural logarithm, at temperature 1 and before any filter, whatever the token
// was chosen with. nullopt as for MakeDistribution.
[[nodiscard]] std::optional<float> LogProbability(std::span<const float> logits, std::int32_t token);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_TOKEN_DISTRIBUTION_H_
