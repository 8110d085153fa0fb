// The backend of an NVIDIA device: one per rank, on one device and one stream. Kernels stand in kernels.h;
// which shapes they have, in dispatch.h.
//
// A list becomes a CUDA graph when it is captured. Where its ranks are in other processes or threads,
// collectives go through the host (Communicator), and the list is cut there: a graph for every part between
// two of them.
#ifndef KVASIR_WORKER_CUDA_CUDA_BACKEND_H_
#define KVASIR_WORKER_CUDA_CUDA_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/backend.h"
#include "worker/engine/communicator.h"

namespace kvasir {

struct CudaOptions {
  int device = 0;
  // Borrowed; outlive the backend. Null: a group of this rank alone.
  Communicator* tensor = nullptr;
  Communicator* context = nullptr;
};

// The devices of this machine by name; FailedPrecondition where there is no driver or no device.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> CudaDevices();

// FailedPrecondition where there is no such device. Calls on one backend must not overlap; different backends
// are independent. Run and Replay return what the CPU's do (worker/cpu/cpu_backend.h), FailedPrecondition for
// a shape without a kernel before anything is enqueued, and Internal where the device failed: the backend is
// of no use then.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const CudaOptions& options);

}  // namespace kvasir

#endif  // KVASIR_WORKER_CUDA_CUDA_BACKEND_H_
