// bfloat16 conversions, bit-exact: round to nearest even; a NaN stays a NaN.
#ifndef KVASIR_COMMON_GEOMETRY_BF16_H_
#define KVASIR_COMMON_GEOMETRY_BF16_H_

#include <bit>
#include <cstdint>

namespace kvasir {

[[nodiscard]] constexpr float Bf16ToFloat(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

[[nodiscard]] constexpr std::uint16_t FloatToBf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  const std::uint32_t round = 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>((bits + round) >> 16);
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_GEOMETRY_BF16_H_
