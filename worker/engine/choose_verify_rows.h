// DSpark's adaptive verification: how many drafted tokens of each request are worth a row of the target's
// verify pass. Rows cost time that all requests share, so under load an unlikely tail is left out.
//
// A row's worth is the probability that everything up to it is accepted, a_j = c_1 ... c_j, c the confidence
// head's acceptance probabilities. Rows are admitted by falling worth while the expected tokens per second
// rise: Theta = (R + sum of a over admitted rows) * steps_per_second(R + admitted rows). The first row that
// does not raise it ends the choice. So whether row j is verified depends only on rows of at least its worth,
// of its own request those before it: the choice never looks at what it decides about (it anticipates
// nothing), which keeps verification lossless.
//
// The choice depends on what else is in the batch: with it, a sampled request's output has the same
// distribution but not the same tokens in every batch. Greedy output does not change.
#ifndef KVASIR_WORKER_ENGINE_CHOOSE_VERIFY_ROWS_H_
#define KVASIR_WORKER_ENGINE_CHOOSE_VERIFY_ROWS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace kvasir {

// confidences[r][j]: of request r's drafted token j, one for each valid one; taken into [0, 1], NaN as 0.
// `steps_per_second(rows)`: measured, positive, for a verify pass of so many rows (anchors included).
// Returns how many drafted tokens of each request to verify: 0 .. confidences[r].size().
[[nodiscard]] std::vector<std::int64_t> ChooseVerifyRows(
    std::span<const std::vector<double>> confidences,
    const std::function<double(std::int64_t rows)>& steps_per_second);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_CHOOSE_VERIFY_ROWS_H_
