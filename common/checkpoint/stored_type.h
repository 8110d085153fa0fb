// Element types as a safetensors file names them.
#ifndef KVASIR_COMMON_CHECKPOINT_STORED_TYPE_H_
#define KVASIR_COMMON_CHECKPOINT_STORED_TYPE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir {

enum class StoredType : std::int8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
};

struct StoredTypeRow {
  StoredType type;
  std::string_view name;
  std::int64_t bytes;  // of one element
};

// In the enum's order. Types of less than a byte are not read.
inline constexpr std::array kStoredTypes = {
    StoredTypeRow{StoredType::kBool, "BOOL", 1},      StoredTypeRow{StoredType::kU8, "U8", 1},
    StoredTypeRow{StoredType::kI8, "I8", 1},          StoredTypeRow{StoredType::kF8E5M2, "F8_E5M2", 1},
    StoredTypeRow{StoredType::kF8E4M3, "F8_E4M3", 1}, StoredTypeRow{StoredType::kF8E8M0, "F8_E8M0", 1},
    StoredTypeRow{StoredType::kI16, "I16", 2},        StoredTypeRow{StoredType::kU16, "U16", 2},
    StoredTypeRow{StoredType::kF16, "F16", 2},        StoredTypeRow{StoredType::kBf16, "BF16", 2},
    StoredTypeRow{StoredType::kI32, "I32", 4},        StoredTypeRow{StoredType::kU32, "U32", 4},
    StoredTypeRow{StoredType::kF32, "F32", 4},        StoredTypeRow{StoredType::kF64, "F64", 8},
    StoredTypeRow{StoredType::kI64, "I64", 8},        StoredTypeRow{StoredType::kU64, "U64", 8},
};

[[nodiscard]] constexpr std::int64_t StoredTypeBytes(StoredType type) {
  return kStoredTypes[static_cast<std::size_t>(type)].bytes;
}

[[nodiscard]] constexpr std::string_view StoredTypeName(StoredType type) {
  return kStoredTypes[static_cast<std::size_t>(type)].name;
}

// The inverse of StoredTypeName; nullopt for any other word.
[[nodiscard]] constexpr std::optional<StoredType> ParseStoredType(std::string_view name) {
  for (const StoredTypeRow& row : kStoredTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_STORED_TYPE_H_
