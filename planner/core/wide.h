// 128-bit integers, for products of bytes that are compared before they are known to fit an arena.
#ifndef KVASIR_PLANNER_CORE_WIDE_H_
#define KVASIR_PLANNER_CORE_WIDE_H_

#include <cstdint>
#include <limits>

namespace kvasir {

__extension__ typedef __int128 Wide;

// Values beyond 64 bits become the largest one.
[[nodiscard]] constexpr std::int64_t Saturated(Wide value) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return value > Wide{kMax} ? kMax : static_cast<std::int64_t>(value);
}

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_WIDE_H_
