// Integer arithmetic that reports overflow, and the few roundings everything is built from.
#ifndef KVASIR_COMMON_BASE_CHECKED_MATH_H_
#define KVASIR_COMMON_BASE_CHECKED_MATH_H_

#include <cstdint>
#include <numeric>
#include <optional>

namespace kvasir {

// nullopt on overflow.
[[nodiscard]] constexpr std::optional<std::int64_t> CheckedAdd(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

[[nodiscard]] constexpr std::optional<std::int64_t> CheckedMul(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// Requires a >= 0, b > 0.
[[nodiscard]] constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// The least multiple of `unit` that is >= `a`. Requires a >= 0, unit > 0; nullopt on overflow.
[[nodiscard]] constexpr std::optional<std::int64_t> CheckedRoundUp(std::int64_t a, std::int64_t unit) {
  return CheckedMul(CeilDiv(a, unit), unit);
}

// Requires a, b > 0; nullopt on overflow.
[[nodiscard]] constexpr std::optional<std::int64_t> CheckedLcm(std::int64_t a, std::int64_t b) {
  return CheckedMul(a / std::gcd(a, b), b);
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_BASE_CHECKED_MATH_H_
