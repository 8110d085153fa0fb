// Sampling parameters, both ways: a client's and those of a step.
#ifndef KVASIR_WORKER_SERVICE_CONVERT_SAMPLING_H_
#define KVASIR_WORKER_SERVICE_CONVERT_SAMPLING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kvasir/worker/v1/sampling.pb.h"
#include "worker/engine/sampling_parameters.h"

namespace kvasir {

// Field paths start with "sampling.". An absent seed becomes `fresh_seed`.
[[nodiscard]] absl::StatusOr<SamplingParameters> ToSampling(const worker::v1::SamplingParameters& message,
                                                            std::uint64_t fresh_seed);
[[nodiscard]] worker::v1::SamplingParameters FromSampling(const SamplingParameters& sampling);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_CONVERT_SAMPLING_H_
