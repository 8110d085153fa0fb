// One split of a softmax over paged keys, and how splits come together; shared by the decode kernels, because
// its order of operations is what makes a row's bits its own.
#ifndef KVASIR_WORKER_CPU_ATTEND_SPLIT_H_
#define KVASIR_WORKER_CPU_ATTEND_SPLIT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "worker/cpu/lanes.h"

namespace kvasir::cpu {

inline constexpr float kNoKeys = -std::numeric_limits<float>::infinity();

// Softmax over the splits seen so far, for one head of one row: weights are relative to exp(largest).
struct Running {
  float largest = kNoKeys;
  float sum = 0;
};

// Buffers of one call. `tile` holds a split's rows as floats, converted once for all rows and heads.
struct SplitBuffers {
  SplitBuffers(std::int64_t split_tokens, std::int64_t row_dim, std::int64_t value_dim)
      : tile(static_cast<std::size_t>(split_tokens * row_dim)),
        scores(static_cast<std::size_t>(split_tokens)),
        part(static_cast<std::size_t>(value_dim)) {}
  std::vector<float> tile;    // [split_tokens, row_dim]
  std::vector<float> scores;  // [split_tokens]
  std::vector<float> part;    // [value_dim]
};

// Where one head's keys and values lie in a tile.
struct SplitView {
  const float* keys;
  const float* values;
  std::int64_t stride, key_dim, value_dim;
  float scale;  // of the scores
};

// out = sum_j weights[j] * values[j], j ascending. Four keys at a time, so that `out` is loaded and stored
// once for four additions; each element's additions stay in ascending order.
inline void SumValues(const float* weights, const SplitView& view, std::int64_t keys, float* out) {
  const std::int64_t stride = view.stride;
  std::fill(out, out + view.value_dim, 0.0F);
  std::int64_t j = 0;
  for (; j + 4 <= keys; j += 4) {
    const float* v = view.values + j * stride;
    const float* w = weights + j;
    for (std::int64_t i = 0; i < view.value_dim; ++i) {
      out[i] = (((out[i] + w[0] * v[i]) + w[1] * v[stride + i]) + w[2] * v[2 * stride + i]) +
               w[3] * v[3 * stride + i];
    }
  }
  for (; j < keys; ++j) AddScaled(out, view.values + j * stride, weights[j], view.value_dim);
}

// Attends to the first `keys` keys of the tile and merges the result into `running` and `out`. A NaN score
// does not become the largest; it reaches the sum through exp, and so the lse.
inline void AttendSplit(const SplitView& view, const float* q, std::int64_t keys, SplitBuffers& buffers,
                        Running& running, float* out) {
  float* scores = buffers.scores.data();
  float largest = kNoKeys;
  for (std::int64_t j = 0; j < keys; ++j) {
    scores[j] = DotLanes(q, view.keys + j * view.stride, view.key_dim) * view.scale;
    if (scores[j] > largest) largest = scores[j];
  }
  float sum = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    scores[j] = std::exp(scores[j] - largest);
    sum += scores[j];
  }
  float* part = buffers.part.data();
  SumValues(scores, view, keys, part);

  const float merged = std::max(running.largest, largest);
  const float keep = std::exp(running.largest - merged);
  const float add = std::exp(largest - merged);
  for (std::int64_t i = 0; i < view.value_dim; ++i) out[i] = out[i] * keep + part[i] * add;
  running.sum = running.sum * keep + sum * add;
  running.largest = merged;
}

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_ATTEND_SPLIT_H_
