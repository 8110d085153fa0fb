#include "worker/service/convert_sampling.h"

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

absl::StatusOr<VerifyMethod> ToMethod(worker::v1::VerifyMethod method) {
  switch (method) {
    case worker::v1::VERIFY_METHOD_UNSPECIFIED:
      return SamplingParameters{}.verify;
    case worker::v1::VERIFY_METHOD_STANDARD:
      return VerifyMethod::kStandard;
    case worker::v1::VERIFY_METHOD_BLOCK:
      return VerifyMethod::kBlock;
    default:
      break;
  }
  return FieldError(
      reason::kUnknownValue, "sampling.verify_method",
      absl::StrFormat("sampling.verify_method is %d; want STANDARD or BLOCK", static_cast<int>(method)));
}

}  // namespace

absl::StatusOr<SamplingParameters> ToSampling(const worker::v1::SamplingParameters& message,
                                              std::uint64_t fresh_seed) {
  SamplingParameters sampling;
  sampling.temperature = message.temperature();
  sampling.top_k = message.top_k();
  if (message.has_top_p()) sampling.top_p = message.top_p();
  sampling.seed = message.has_seed() ? message.seed() : fresh_seed;
  KVASIR_ASSIGN_OR_RETURN(sampling.verify, ToMethod(message.verify_method()));
  sampling.logprobs = message.logprobs();
  KVASIR_RETURN_IF_ERROR(CheckSampling(sampling));
  return sampling;
}

worker::v1::SamplingParameters FromSampling(const SamplingParameters& sampling) {
  worker::v1::SamplingParameters message;
  message.set_temperature(sampling.temperature);
  message.set_top_k(sampling.top_k);
  message.set_top_p(sampling.top_p);
  message.set_seed(sampling.seed);
  message.set_verify_method(sampling.verify == VerifyMethod::kBlock ? worker::v1::VERIFY_METHOD_BLOCK
                                                                    : worker::v1::VERIFY_METHOD_STANDARD);
  message.set_logprobs(sampling.logprobs);
  return message;
}

}  // namespace kvasir
