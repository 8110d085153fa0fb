// Which kernel runs an operation of this shape on this device, as a table; and, where none does, what each
// lacks. No CUDA here: it is judged before anything is enqueued, and tested without a device.
#ifndef KVASIR_WORKER_CUDA_DISPATCH_H_
#define KVASIR_WORKER_CUDA_DISPATCH_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/launch.h"

namespace kvasir::cuda {

struct DeviceLimits {
  int architecture = 0;               // 90: sm_90
  std::int64_t shared_bytes_max = 0;  // that a block can ask for
};

enum class DecodeKernelId : std::int8_t {
  kMma,      // decode_mma.cu: tensor cores
  kThreads,  // decode_threads.cu: float threads
};

// What a kernel of paged attention can do.
struct DecodeKernelRow {
  DecodeKernelId id;
  std::string_view name;
  int architecture_min;
  bool takes_bf16, takes_f32;
  bool values_in_keys;  // only so
  std::int64_t key_dim_max, value_dim_max;
  std::int64_t key_dim_multiple, value_dim_multiple;
  std::int64_t byte_multiple;  // that rows begin at
};
// The first that takes a shape runs it.
[[nodiscard]] std::span<const DecodeKernelRow> DecodeKernels();

struct DecodeShape {
  DType dtype = DType::kBf16;
  std::int64_t key_dim = 0, value_dim = 0;
  bool values_in_keys = false;
  std::int64_t row_alignment = 1;  // bytes: the largest power of two that every row of the cache begins at
};
[[nodiscard]] DecodeShape ShapeOf(const MlaDecodeOp& op);
[[nodiscard]] DecodeShape ShapeOf(const GqaDecodeOp& op);
// Bytes of shared memory that a block of the kernel takes.
[[nodiscard]] std::int64_t SharedBytesOf(DecodeKernelId kernel, const DecodeShape& shape);

// A kernel without some of what is asked for.
struct LackingKernel {
  std::string_view name;
  std::vector<std::string> missing;  // "key_dim 640 (at most 576)"
};
// The first kernel of the table that lacks nothing, or every kernel with what it lacks.
[[nodiscard]] std::variant<DecodeKernelId, std::vector<LackingKernel>> ChooseDecode(
    const DecodeShape& shape, const DeviceLimits& device);

// FailedPrecondition for the first operation that no kernel runs: its name, what is missing where, and that
// the host's backend has no such limits.
[[nodiscard]] absl::Status CheckShapes(const LaunchList& list, const DeviceLimits& device);

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_DISPATCH_H_
