// What is wrong with a checkpoint: in which file, at which tensor, what stood there, and the way out.
#ifndef KVASIR_COMMON_CHECKPOINT_CHECKPOINT_ERROR_H_
#define KVASIR_COMMON_CHECKPOINT_CHECKPOINT_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvasir {

struct CheckpointError {
  std::string_view reason;  // CHECKPOINT_... of common/base/error_reasons.h; it gives the code
  std::string file = {};    // or directory
  std::string tensor = {};  // empty where the whole file is at fault
  std::string value = {};   // as it stood there; empty if there is none
  std::string fix = {};     // what is expected, or what to do
};

// A typed error (common/base/typed_error.h) with metadata `file`, `tensor` and `value`:
// "model.safetensors: tensor a.weight: dtype "F4": expected one of BOOL, U8, ...". Parts are cut to a length
// that a message may carry and hold printable ASCII only.
[[nodiscard]] absl::Status ToStatus(const CheckpointError& error);

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_CHECKPOINT_ERROR_H_
