#include "tests/simulation/arrivals.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "common/base/checked_math.h"
#include "planner/core/capacity.h"
#include "tests/testing/seeded_random.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kTypicalTokens = 8192;
constexpr std::int64_t kShortPrompt = 1024;
constexpr std::int64_t kLongPrompt = 51200;
constexpr std::int64_t kAnswerTokens = 1024;  // max_tokens in phases, give or take half
constexpr std::int64_t kTokensPerStep = 4;    // that a verify emits

// Quantiles of the lognormal distribution with median 8192 and sigma 1: 1/256, 1/64, 2/64 ... 63/64, 255/256.
// A table, since std::lognormal_distribution may draw other numbers in every library.
constexpr std::array<std::int64_t, 65> kLengths = {
    573,   951,   1272,  1533,  1767,  1984,  2193,  2395,  2593,  2789,  2984,  3178,  3374,
    3570,  3769,  3970,  4173,  4380,  4591,  4805,  5025,  5249,  5479,  5715,  5957,  6206,
    6462,  6727,  7000,  7282,  7574,  7877,  8192,  8519,  8860,  9216,  9588,  9977,  10385,
    10814, 11266, 11743, 12249, 12785, 13356, 13965, 14619, 15322, 16081, 16906, 17807, 18796,
    19892, 21114, 22492, 24063, 25881, 28023, 30605, 33817, 37988, 43777, 52767, 70600, 117123};

// Chunks of the prompt one by one, then verifies; a stop token may end it before max_tokens.
Arrival ArrivalOf(const Plan& plan, std::int64_t prompt, std::int64_t max_tokens, SeededRandom& random) {
  const std::int64_t emitted = 1 + random.Below(max_tokens);
  return {.tokens = prompt + max_tokens,
          .steps = CeilDiv(prompt, plan.prefill_chunk) + CeilDiv(emitted, kTokensPerStep)};
}

Arrival SteadyArrival(const Plan& plan, SeededRandom& random) {
  const auto part = static_cast<std::size_t>(random.Below(kLengths.size() - 1));
  const std::int64_t within = random.Below(1024);
  const std::int64_t drawn = kLengths[part] + (kLengths[part + 1] - kLengths[part]) * within / 1024;
  const std::int64_t tokens = std::min(drawn, plan.context_tokens);
  return ArrivalOf(plan, tokens - tokens / 4, tokens / 4, random);
}

Arrival PhaseArrival(const Plan& plan, std::int64_t prompt, SeededRandom& random) {
  const std::int64_t tokens = random.Around(prompt, prompt / 4);
  return ArrivalOf(plan, tokens, random.Around(kAnswerTokens, kAnswerTokens / 2), random);
}

}  // namespace

std::string_view WorkloadName(Workload workload) {
  return workload == Workload::kSteady ? "steady" : "phases";
}

std::vector<Arrival> ArrivalsFor(Workload workload, const Plan& plan, std::int64_t fills,
                                 std::uint64_t seed) {
  SeededRandom random(seed);
  const auto filling = [&](std::int64_t tokens) { return CapacityAt(plan, tokens).requests; };
  std::vector<Arrival> arrivals;
  if (workload == Workload::kSteady) {
    const std::int64_t count = fills * filling(kTypicalTokens);
    for (std::int64_t i = 0; i < count; ++i) arrivals.push_back(SteadyArrival(plan, random));
    return arrivals;
  }
  constexpr std::int64_t kFillsPerPhase = 2;
  for (std::int64_t fill = 0; fill < fills; fill += kFillsPerPhase) {
    const std::int64_t prompt = fill / kFillsPerPhase % 2 == 0 ? kShortPrompt : kLongPrompt;
    const std::int64_t count = kFillsPerPhase * filling(prompt + kAnswerTokens);
    for (std::int64_t i = 0; i < count; ++i) arrivals.push_back(PhaseArrival(plan, prompt, random));
  }
  return arrivals;
}

}  // namespace kvasir::testing
