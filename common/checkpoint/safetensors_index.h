// Reads model.safetensors.index.json: which file of a checkpoint holds which tensor. A pure function over
// text: {"metadata": {...}, "weight_map": {"tensor": "model-00001-of-00002.safetensors", ...}}.
#ifndef KVASIR_COMMON_CHECKPOINT_SAFETENSORS_INDEX_H_
#define KVASIR_COMMON_CHECKPOINT_SAFETENSORS_INDEX_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvasir {

inline constexpr std::int64_t kIndexBytesMax = std::int64_t{256} << 20;
inline constexpr std::int64_t kIndexTensorsMax = std::int64_t{4} << 20;
inline constexpr std::int64_t kCheckpointFilesMax = 4096;
inline constexpr std::int64_t kFileNameBytesMax = 255;

struct SafetensorsIndex {
  std::set<std::string> files;
  std::map<std::string, std::string> file_of;  // tensor name -> an entry of `files`
};

// InvalidArgument (CHECKPOINT_INVALID) names the tensor, the value and the fix. File names are bare: no path
// separator, not hidden, ending in ".safetensors". What stands beside weight_map is passed over.
[[nodiscard]] absl::StatusOr<SafetensorsIndex> ReadSafetensorsIndex(std::string_view text,
                                                                    std::string_view file);

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_SAFETENSORS_INDEX_H_
