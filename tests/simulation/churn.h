// What churn leaves of a plan: sequences arrive at a queue that is never empty, are admitted first come first
// served and leave, over the engine's own block tables and pools without memory behind them, or over an
// allocator whose bytes are fungible.
//
// Time is in steps. A sequence reserves all its blocks when it is admitted, as the engine does, and frees
// them when it ends. The load is the bytes of the blocks that running sequences have reserved, at their
// stride; its mean is taken over the steps from the admission of the quarter of the arrivals to that of the
// last, all the while with a sequence waiting. The durations do not depend on the allocator, so equal
// arrivals are equal work: the ratio of two means is also the ratio of the sequences done in equal time.
#ifndef KVASIR_TESTS_SIMULATION_CHURN_H_
#define KVASIR_TESTS_SIMULATION_CHURN_H_

#include <cstdint>
#include <vector>

#include "common/plan/plan.h"
#include "tests/simulation/arrivals.h"

namespace kvasir::testing {

enum class Allocator : std::int8_t {
  kFungible,   // one counter of bytes: the whole arena, the null parent included; nothing is ever in the way
  kPools,      // the engine's pools, where no block moves
  kCompacted,  // the same; while the next sequence is refused, at most one parent a step is emptied
};

struct ChurnResult {
  std::int64_t mean_bytes = 0;     // the load
  std::int64_t steps = 0;          // over which it is the mean
  std::int64_t moved_parents = 0;  // from the first arrival on
  std::int64_t moved_bytes = 0;    // per rank
  // Of the sequences that had to wait while nothing was moved: the most parents that would have been free
  // beside the sequence, and one, had every pool stood in as few parents as its blocks fill. 0: none had to
  // wait for blocks that lay apart. Of kFungible always 0.
  std::int64_t stranded_parents = 0;
  friend bool operator==(const ChurnResult&, const ChurnResult&) = default;
};

[[nodiscard]] ChurnResult RunChurn(const Plan& plan, const std::vector<Arrival>& arrivals,
                                   Allocator allocator);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_SIMULATION_CHURN_H_
