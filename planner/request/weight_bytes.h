// How many bytes a model's weights take on one rank: from the shapes and the checkpoint's quantisation, as a
// range, or from the index of a safetensors checkpoint. Norms, biases, routers' corrections and the parts of
// multimodal models that are not described are in the range's upper end.
#ifndef KVASIR_PLANNER_REQUEST_WEIGHT_BYTES_H_
#define KVASIR_PLANNER_REQUEST_WEIGHT_BYTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir {

// Bytes with what they rest on. least == most: exact.
struct BytesRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::string basis;
};

struct WeightSplit {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  bool with_mtp = false;  // the checkpoint's MTP layers are loaded too
};

// Of the fullest rank. `checkpoint_bytes`: the whole checkpoint's size, where its index is at hand.
[[nodiscard]] BytesRange WeightBytesOf(const ModelDescription& model, const WeightSplit& split,
                                       std::optional<std::int64_t> checkpoint_bytes);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_WEIGHT_BYTES_H_
