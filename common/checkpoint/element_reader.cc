#include "common/checkpoint/element_reader.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "common/geometry/bf16.h"

namespace kvasir {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

// `count` elements of type T from an address that need not be aligned.
template <typename T, typename Widen>
void ReadElements(const char* from, std::int64_t count, float* out, Widen widen) {
  for (std::int64_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    out[i] = widen(element);
  }
}

std::array<float, 256> MakeE4M3Table() {
  std::array<float, 256> table{};
  for (std::size_t bits = 0; bits < table.size(); ++bits) {
    const int exponent = static_cast<int>((bits >> 3U) & 15U);
    const int mantissa = static_cast<int>(bits & 7U);
    const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                          : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    table[bits] = (bits & 128U) != 0 ? -magnitude : magnitude;
    if ((bits & 127U) == 127U) table[bits] = std::numeric_limits<float>::quiet_NaN();
  }
  return table;
}

void MultiplyByScales(const StoredMatrix& matrix, std::int64_t row, std::int64_t col_begin,
                      std::int64_t count, float* out) {
  const std::int64_t row_of_scales = row / kScaleBlock * CeilDiv(matrix.cols, kScaleBlock);
  for (std::int64_t i = 0; i < count; ++i) {
    float scale = 0;
    const std::int64_t index = row_of_scales + (col_begin + i) / kScaleBlock;
    std::memcpy(&scale, matrix.scales.data() + index * static_cast<std::int64_t>(sizeof(float)),
                sizeof(float));
    out[i] *= scale;
  }
}

}  // namespace

float F16ToFloat(std::uint16_t bits) {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x8000U) << 16U;
  const std::uint32_t exponent = (std::uint32_t{bits} >> 10U) & 31U;
  const std::uint32_t mantissa = std::uint32_t{bits} & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13U));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
  const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  return sign != 0 ? -magnitude : magnitude;
}

float E4M3ToFloat(std::uint8_t bits) {
  static const std::array<float, 256> table = MakeE4M3Table();
  return table[bits];
}

bool IsReadable(StoredType type) {
  return type == StoredType::kBf16 || type == StoredType::kF32 || type == StoredType::kF16 ||
         type == StoredType::kF8E4M3;
}

void ReadRow(const StoredMatrix& matrix, std::int64_t row, std::int64_t col_begin, std::int64_t count,
             float* out) {
  KVASIR_CHECK(row >= 0 && row < matrix.rows && col_begin >= 0 && count >= 0);
  KVASIR_CHECK(col_begin + count <= matrix.cols);
  const char* from = matrix.bytes.data() + (row * matrix.cols + col_begin) * StoredTypeBytes(matrix.type);
  switch (matrix.type) {
    case StoredType::kBf16:
      return ReadElements<std::uint16_t>(from, count, out, Bf16ToFloat);
    case StoredType::kF16:
      return ReadElements<std::uint16_t>(from, count, out, F16ToFloat);
    case StoredType::kF32:
      std::memcpy(out, from, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case StoredType::kF8E4M3:
      ReadElements<std::uint8_t>(from, count, out, E4M3ToFloat);
      return MultiplyByScales(matrix, row, col_begin, count, out);
    default:
      KVASIR_CHECK(IsReadable(matrix.type));
  }
}

}  // namespace kvasir
