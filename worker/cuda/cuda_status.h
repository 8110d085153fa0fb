// An error of the CUDA runtime as a status.
#ifndef KVASIR_WORKER_CUDA_CUDA_STATUS_H_
#define KVASIR_WORKER_CUDA_CUDA_STATUS_H_

#include <cuda_runtime.h>

#include <string_view>

#include "absl/status/status.h"

namespace kvasir::cuda {

// ResourceExhausted where memory is out, FailedPrecondition where there is no driver or device, else
// Internal; the message names the call, the error and its text.
[[nodiscard]] absl::Status FromCuda(cudaError_t error, std::string_view call);

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_CUDA_STATUS_H_
