// The backend that runs everywhere: host memory, one thread per rank, plain C++. It comes in two versions
// that run the same launch lists over the same memory:
//   kReference  attention and combine as in reference_decode.h and reference_combine.h, in double: the
//               definition
//   kFast       the same results within the conformance tolerances, in float lanes; what workers use
// Both are deterministic, and no row's bits depend on the other rows of a call (DESIGN section 3).
#ifndef KVASIR_WORKER_CPU_CPU_BACKEND_H_
#define KVASIR_WORKER_CPU_CPU_BACKEND_H_

#include <cstdint>
#include <memory>

#include "common/base/units.h"
#include "worker/engine/backend.h"
#include "worker/engine/communicator.h"

namespace kvasir {

enum class CpuKernels : std::int8_t { kFast, kReference };

struct CpuOptions {
  Bytes memory_limit{std::int64_t{1} << 40};  // of all allocations that live at one time
  // Borrowed; outlive the backend. Null: a group of this rank alone.
  Communicator* tensor = nullptr;
  Communicator* context = nullptr;
  CpuKernels kernels = CpuKernels::kFast;
};

// Runs operations one after the other on the calling thread. Calls on one backend must not overlap; different
// backends are independent. Run and Replay return InvalidArgument for a token id outside an embedding table
// (row, id and limit), and the communicator's error where a collective failed.
[[nodiscard]] std::unique_ptr<Backend> MakeCpuBackend(const CpuOptions& options);

}  // namespace kvasir

#endif  // KVASIR_WORKER_CPU_CPU_BACKEND_H_
