// Sequences that want to be admitted: lengths drawn by a generator of our own from a published seed, so that
// every build draws the same.
#ifndef KVASIR_TESTS_SIMULATION_ARRIVALS_H_
#define KVASIR_TESTS_SIMULATION_ARRIVALS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/plan/plan.h"

namespace kvasir::testing {

struct Arrival {
  std::int64_t tokens = 0;  // prompt + max_tokens: what is reserved
  std::int64_t steps = 0;   // from admission to the end
};

enum class Workload : std::int8_t {
  kSteady,  // lognormal lengths, median 8192, sigma 1, cut off at the plan's context
  kPhases,  // prompts of 1k and of 50k tokens (give or take a quarter) in turns, each long enough to fill the
            // arena twice: memory flows between states and tokens
};
// steady | phases
[[nodiscard]] std::string_view WorkloadName(Workload workload);

// In the order of arrival. As many as fill the arena `fills` times: of a typical length, or in phases.
[[nodiscard]] std::vector<Arrival> ArrivalsFor(Workload workload, const Plan& plan, std::int64_t fills,
                                               std::uint64_t seed);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_SIMULATION_ARRIVALS_H_
