// Tagged integers: a LayerId cannot be passed for a GroupId, nor Bytes for Tokens.
// Ids compare only. Quantities also add among themselves and scale by plain integers; overflow is the
// caller's duty (use checked_math.h where a value comes from outside).
#ifndef KVASIR_COMMON_BASE_STRONG_INT_H_
#define KVASIR_COMMON_BASE_STRONG_INT_H_

#include <compare>
#include <cstdint>

namespace kvasir {

template <class Tag, class Rep>
class StrongId {
 public:
  constexpr StrongId() = default;
  explicit constexpr StrongId(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;

 private:
  Rep value_ = 0;
};

template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(std::int64_t value) : value_(value) {}
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return Quantity(a.value_ * n); }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }

 private:
  std::int64_t value_ = 0;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_BASE_STRONG_INT_H_
