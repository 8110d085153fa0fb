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
  std::string name = {};  // as the launch writes it, where that is not the description's
};

// The format that a checkpoint's name promises ("NVFP4", "FP8") and its configuration does not give; empty
// where the name promises none or the configuration has a format. Some tools write the format into a file of
// their own beside config.json.
[[nodiscard]] std::string_view UnstatedFormat(const ModelDescription& model, std::string_view name);

// Of the fullest rank. With an unstated format the range ends at unquantised weights and begins at weights
// that are all of that format. `checkpoint_bytes`: the whole checkpoint's size, where its index is at hand.
[[nodiscard]] BytesRange WeightBytesOf(const ModelDescription& model, const WeightSplit& split,
                                       std::optional<std::int64_t> checkpoint_bytes);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_WEIGHT_BYTES_H_
