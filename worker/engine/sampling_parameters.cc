#include "worker/engine/sampling_parameters.h"

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {

// The comparisons are written so that NaN fails them.
absl::Status CheckSampling(const SamplingParameters& sampling) {
  if (!(sampling.temperature >= 0 && sampling.temperature <= kTemperatureMax)) {
    return FieldError(reason::kValueOutOfRange, "sampling.temperature",
                      absl::StrFormat("sampling.temperature: %g, want 0 (greedy) to %g", sampling.temperature,
                                      kTemperatureMax));
  }
  if (sampling.top_k < 0 || sampling.top_k > kTopKMax) {
    return FieldError(
        reason::kValueOutOfRange, "sampling.top_k",
        absl::StrFormat("sampling.top_k: %d, want 0 (all tokens) to %d", sampling.top_k, kTopKMax));
  }
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) {
    return FieldError(
        reason::kValueOutOfRange, "sampling.top_p",
        absl::StrFormat("sampling.top_p: %g, want above 0 and at most 1 (all tokens)", sampling.top_p));
  }
  if (sampling.verify != VerifyMethod::kStandard && sampling.verify != VerifyMethod::kBlock) {
    return FieldError(reason::kUnknownValue, "sampling.verify_method",
                      absl::StrFormat("sampling.verify_method: %d, want standard or block",
                                      static_cast<int>(sampling.verify)));
  }
  return absl::OkStatus();
}

}  // namespace kvasir
