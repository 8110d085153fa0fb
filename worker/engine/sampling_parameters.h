// How a request's tokens are chosen from the target's logits.
#ifndef KVASIR_WORKER_ENGINE_SAMPLING_PARAMETERS_H_
#define KVASIR_WORKER_ENGINE_SAMPLING_PARAMETERS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace kvasir {

// How drafted tokens are judged where tokens are sampled. Both leave the distribution of the output as it is
// without a draft; `block` accepts at least as many on average (verify_sampled.h).
enum class VerifyMethod : std::int8_t { kStandard, kBlock };

inline constexpr double kTemperatureMax = 100;
inline constexpr std::int64_t kTopKMax = 1'000'000'000;

struct SamplingParameters {
  double temperature = 0;  // 0: greedy, and the next four do nothing; at most kTemperatureMax
  std::int64_t top_k = 0;  // 0, or at least the vocabulary: off; at most kTopKMax
  double top_p = 1;        // above 0, at most 1; 1: off
  std::uint64_t seed = 0;  // of random_draw.h
  VerifyMethod verify = VerifyMethod::kBlock;
  bool logprobs = false;  // report the log-probability of each token
  friend bool operator==(const SamplingParameters&, const SamplingParameters&) = default;

  [[nodiscard]] bool samples() const { return temperature > 0; }
  // Whether the logits are looked at beyond the largest one.
  [[nodiscard]] bool needs_logits() const { return samples() || logprobs; }
};

// InvalidArgument naming the field ("sampling.top_p"), its value and what is allowed.
[[nodiscard]] absl::Status CheckSampling(const SamplingParameters& sampling);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_SAMPLING_PARAMETERS_H_
