// The one order in which this backend sums products: 16 independent float lanes along K, lane l taking the
// elements l, l + 16, l + 32, ..., folded at the end in a fixed tree. A compiler may put the lanes in vectors
// of any width without changing a bit, and the order does not depend on how many rows or columns a call has.
#ifndef KVASIR_WORKER_CPU_LANES_H_
#define KVASIR_WORKER_CPU_LANES_H_

#include <cstdint>

namespace kvasir::cpu {

inline constexpr std::int64_t kLanes = 16;

// Folds the lanes: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
[[nodiscard]] inline float FoldLanes(float* lanes) {
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// sum_k a[k] * b[k]
[[nodiscard]] inline float DotLanes(const float* a, const float* b, std::int64_t count) {
  float lanes[kLanes] = {};
  const std::int64_t whole = count - count % kLanes;
  for (std::int64_t k = 0; k < whole; k += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += a[k + l] * b[k + l];
  }
  for (std::int64_t l = 0; l < count - whole; ++l) lanes[l] += a[whole + l] * b[whole + l];
  return FoldLanes(lanes);
}

// out[i] += scale * in[i]; each element is its own lane.
inline void AddScaled(float* out, const float* in, float scale, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] += scale * in[i];
}

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_LANES_H_
