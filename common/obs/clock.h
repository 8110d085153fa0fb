// Time as a dependency, so that tests own it.
#ifndef KVASIR_COMMON_OBS_CLOCK_H_
#define KVASIR_COMMON_OBS_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace kvasir {

class Clock {
 public:
  virtual ~Clock() = default;
  // Milliseconds of a clock that never goes back; its start has no meaning.
  [[nodiscard]] virtual std::int64_t MonotonicMs() const = 0;
  // Milliseconds since 1970-01-01 UTC; for people only.
  [[nodiscard]] virtual std::int64_t WallMs() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] std::int64_t MonotonicMs() const override {
    return Milliseconds(std::chrono::steady_clock::now().time_since_epoch());
  }
  [[nodiscard]] std::int64_t WallMs() const override {
    return Milliseconds(std::chrono::system_clock::now().time_since_epoch());
  }

 private:
  template <class Duration>
  static std::int64_t Milliseconds(Duration since) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  }
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_OBS_CLOCK_H_
