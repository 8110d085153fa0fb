// Whether a checkpoint holds a model's tensors, and which is which.
#ifndef KVASIR_COMMON_CHECKPOINT_CHECK_TENSORS_H_
#define KVASIR_COMMON_CHECKPOINT_CHECK_TENSORS_H_

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/tensor_key.h"
#include "common/models/model_description.h"

namespace kvasir {

inline constexpr std::int64_t kTensorProblemsShown = 8;  // a status on the wire carries 1 KiB of text

// Both point into the checkpoint.
struct ModelTensor {
  const StoredTensor* weight = nullptr;
  const StoredTensor* scales = nullptr;  // of F8_E4M3 weights; else null
};

using ModelTensors = std::map<TensorKey, ModelTensor>;

// Every tensor that the model needs, in its shape and a type that can be read, and no other but those that
// are passed over (expected_tensors.h). InvalidArgument (CHECKPOINT_MISMATCH) lists the first
// kTensorProblemsShown faults, missing and misshapen tensors in the model's order, then surplus ones by
// name; metadata `tensor`, `found` and `expected` are the first's, `problems` their number.
// FailedPrecondition (CHECKPOINT_UNSUPPORTED) as ExpectedTensors, and for tensors of something that the
// engine does not compute.
[[nodiscard]] absl::StatusOr<ModelTensors> CheckTensors(const Checkpoint& checkpoint,
                                                        const ModelDescription& model);

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_CHECK_TENSORS_H_
