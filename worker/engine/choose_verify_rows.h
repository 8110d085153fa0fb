// DSpark's adaptive verification: how many drafted tokens are worth a row of the target's verify pass. Rows
// cost time that all requests share, so under load an unlikely tail is left out.
//
// A row's worth is the probability that everything up to it is accepted, a_j = c_1 ... c_j, c the confidence
// head's acceptance probabilities. A verify pass has the same number of rows for each of its R requests, so
// columns are admitted from the first on while the expected tokens per time rise:
//   Theta(q) = (R + sum of a_j over all requests and j <= q) / (fixed + row * R * (1 + q)).
// The first column that does not raise it ends the choice. So whether token j is verified depends on
// confidences up to c_j only, and those depend on tokens before j (MarkovChainOp): the choice never looks at
// what it decides about, which keeps verification lossless.
//
// The choice depends on what else is in the batch: with it, a sampled request's output has the same
// distribution but not the same tokens in every batch. Greedy output does not change.
#ifndef KVASIR_WORKER_ENGINE_CHOOSE_VERIFY_ROWS_H_
#define KVASIR_WORKER_ENGINE_CHOOSE_VERIFY_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/step_cost.h"

namespace kvasir {

// confidences[r][j]: of request r's drafted token j, one for each valid one; taken into [0, 1], NaN as 0.
// Returns how many drafted tokens of each request to verify, from 0 to the most that any has; a request that
// has fewer verifies all of its own.
[[nodiscard]] std::int64_t ChooseVerifyRows(std::span<const std::vector<float>> confidences,
                                            const StepCost& cost);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_CHOOSE_VERIFY_ROWS_H_
