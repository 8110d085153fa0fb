// Element types of caches, states and weights.
#ifndef KVASIR_COMMON_GEOMETRY_DTYPE_H_
#define KVASIR_COMMON_GEOMETRY_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir {

enum class DType : std::int8_t { kBf16, kF16, kF32, kFp8E4M3 };

// Bytes per element.
[[nodiscard]] constexpr std::int64_t DTypeBytes(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
    case DType::kF16:
      return 2;
    case DType::kF32:
      return 4;
    case DType::kFp8E4M3:
      return 1;
  }
  return 0;
}

[[nodiscard]] constexpr std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kF32:
      return "f32";
    case DType::kFp8E4M3:
      return "fp8_e4m3";
  }
  return "invalid";
}

// The inverse of DTypeName; nullopt for any other word.
[[nodiscard]] std::optional<DType> ParseDType(std::string_view name);

}  // namespace kvasir

#endif  // KVASIR_COMMON_GEOMETRY_DTYPE_H_
