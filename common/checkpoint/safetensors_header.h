// Reads the header of a safetensors file: a pure function over bytes. The format
// (https://github.com/huggingface/safetensors, "Format"): 8 bytes, the header's length N as a little-endian
// integer; N bytes of JSON, {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
// "__metadata__": {"key": "value"}}; then the tensors' bytes, row-major and little-endian, without holes.
#ifndef KVASIR_COMMON_CHECKPOINT_SAFETENSORS_HEADER_H_
#define KVASIR_COMMON_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/stored_type.h"

namespace kvasir {

inline constexpr std::int64_t kHeaderBytesMax = 100'000'000;  // the format's own limit
inline constexpr std::int64_t kFileTensorsMax = 1 << 20;
inline constexpr std::int64_t kTensorNameBytesMax = 512;
inline constexpr std::int64_t kTensorRankMax = 8;
inline constexpr std::int64_t kMetadataPairsMax = 4096;

struct TensorEntry {
  std::string name;
  StoredType type = StoredType::kF32;
  std::vector<std::int64_t> shape = {};  // outermost first; empty for a scalar
  std::int64_t begin = 0;                // of its bytes, from the start of the file
  std::int64_t end = 0;
  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // by name
  std::map<std::string, std::string> metadata;
};

// `bytes` is the whole file, `file` its name for messages. InvalidArgument (CHECKPOINT_INVALID) names the
// tensor, the value and the fix: truncated, over a limit, not this JSON, a name twice, a shape whose bytes
// are not what the offsets span, offsets outside the file, tensors that overlap, bytes of no tensor.
[[nodiscard]] absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(std::string_view bytes,
                                                                      std::string_view file);

// "[2, 3]".
[[nodiscard]] std::string ShapeText(const std::vector<std::int64_t>& shape);

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_SAFETENSORS_HEADER_H_
