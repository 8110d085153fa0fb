// The index of a safetensors checkpoint: how many bytes its weights have.
#ifndef KVASIR_PLANNER_REQUEST_CHECKPOINT_JSON_H_
#define KVASIR_PLANNER_REQUEST_CHECKPOINT_JSON_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvasir {

// metadata.total_size of a model.safetensors.index.json. InvalidArgument: another form.
[[nodiscard]] absl::StatusOr<std::int64_t> CheckpointBytes(std::string_view index_json);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_CHECKPOINT_JSON_H_
