#include "common/geometry/dtype.h"

namespace kvasir {

std::optional<DType> ParseDType(std::string_view name) {
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32, DType::kFp8E4M3}) {
    if (name == DTypeName(dtype)) return dtype;
  }
  return std::nullopt;
}

}  // namespace kvasir
