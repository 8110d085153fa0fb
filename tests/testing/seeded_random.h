// Numbers from a seed that are the same on every machine and library: std::mt19937 is, the distributions of
// <random> are not.
#ifndef KVASIR_TESTS_TESTING_SEEDED_RANDOM_H_
#define KVASIR_TESTS_TESTING_SEEDED_RANDOM_H_

#include <cstdint>

namespace kvasir::testing {

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}

  // 0 .. limit - 1
  std::int64_t Below(std::int64_t limit) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>((state_ >> 33U) % static_cast<std::uint64_t>(limit));
  }
  // center - spread .. center + spread
  std::int64_t Around(std::int64_t center, std::int64_t spread) {
    return center - spread + Below(2 * spread + 1);
  }

 private:
  std::uint64_t state_;
};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_SEEDED_RANDOM_H_
