#include "worker/cpu/mla_decode.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "worker/cpu/cache_row.h"
#include "worker/cpu/lanes.h"

namespace kvasir::cpu {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

// Softmax over the splits seen so far, for one head of one row: weights are relative to exp(largest).
struct Running {
  float largest = kEmpty;
  float sum = 0;
};

// Buffers of one call. `tile` holds a split's keys as floats, converted once for all rows and heads.
struct Buffers {
  std::vector<float> tile;    // [split_tokens, latent + rope]
  std::vector<float> scores;  // [split_tokens]
  std::vector<float> part;    // [latent]
};

// out = sum_j weights[j] * tile[j, 0..latent), j ascending. Four keys at a time, so that `out` is loaded and
// stored once for four additions; each element's additions stay in ascending order.
void SumValues(const float* weights, const float* tile, std::int64_t keys, const MlaDecodeOp& op,
               float* out) {
  const std::int64_t width = op.latent + op.rope;
  std::fill(out, out + op.latent, 0.0F);
  std::int64_t j = 0;
  for (; j + 4 <= keys; j += 4) {
    const float* v = tile + j * width;
    const float* w = weights + j;
    for (std::int64_t i = 0; i < op.latent; ++i) {
      out[i] = (((out[i] + w[0] * v[i]) + w[1] * v[width + i]) + w[2] * v[2 * width + i]) +
               w[3] * v[3 * width + i];
    }
  }
  for (; j < keys; ++j) AddScaled(out, tile + j * width, weights[j], op.latent);
}

// Attends to the first `keys` keys of the tile and merges the result into `running` and `out`. A NaN score
// does not become the largest; it reaches the sum through exp, and so the lse.
void AttendSplit(const MlaDecodeOp& op, const float* q, std::int64_t keys, Buffers& buffers, Running& running,
                 float* out) {
  const std::int64_t width = op.latent + op.rope;
  float* scores = buffers.scores.data();
  float largest = kEmpty;
  for (std::int64_t j = 0; j < keys; ++j) {
    scores[j] = DotLanes(q, buffers.tile.data() + j * width, width) * op.scale;
    if (scores[j] > largest) largest = scores[j];
  }
  float sum = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    scores[j] = std::exp(scores[j] - largest);
    sum += scores[j];
  }
  float* part = buffers.part.data();
  SumValues(scores, buffers.tile.data(), keys, op, part);

  const float merged = std::max(running.largest, largest);
  const float keep = std::exp(running.largest - merged);
  const float add = std::exp(largest - merged);
  for (std::int64_t i = 0; i < op.latent; ++i) out[i] = out[i] * keep + part[i] * add;
  running.sum = running.sum * keep + sum * add;
  running.largest = merged;
}

void DecodeRequest(const MlaDecodeOp& op, std::int64_t request, Buffers& buffers,
                   std::vector<Running>& running) {
  const std::int64_t width = op.latent + op.rope;
  const std::int64_t* table = op.block_table + request * op.table_width;
  const std::int64_t* bounds = op.bounds + request * op.query_rows;
  const std::int64_t first_head = request * op.query_rows * op.heads;
  const std::int64_t row_heads = op.query_rows * op.heads;
  float* out = op.out + first_head * op.latent;
  std::fill(out, out + row_heads * op.latent, 0.0F);
  std::fill(running.begin(), running.end(), Running{});

  const std::int64_t longest = *std::max_element(bounds, bounds + op.query_rows);
  for (std::int64_t begin = 0; begin < longest; begin += op.split_tokens) {
    const std::int64_t loaded = std::min(op.split_tokens, longest - begin);
    for (std::int64_t j = 0; j < loaded; ++j) {
      LoadRow(CacheRow(op.arena, op.page, table, begin + j), op.dtype, width,
              buffers.tile.data() + j * width);
    }
    for (std::int64_t index = 0; index < row_heads; ++index) {
      const std::int64_t keys = std::min(op.split_tokens, bounds[index / op.heads] - begin);
      if (keys <= 0) continue;  // no visible key in this split: nothing is added, not even a zero
      AttendSplit(op, op.q + (first_head + index) * width, keys, buffers,
                  running[static_cast<std::size_t>(index)], out + index * op.latent);
    }
  }
  for (std::int64_t index = 0; index < row_heads; ++index) {
    const Running& state = running[static_cast<std::size_t>(index)];
    if (bounds[index / op.heads] <= 0) {
      op.lse[first_head + index] = kEmpty;
      continue;
    }
    const float inverse = 1.0F / state.sum;
    for (std::int64_t i = 0; i < op.latent; ++i) out[index * op.latent + i] *= inverse;
    op.lse[first_head + index] = state.largest + std::log(state.sum);
  }
}

}  // namespace

void MlaDecode(const MlaDecodeOp& op) {
  Buffers buffers;
  buffers.tile.resize(static_cast<std::size_t>(op.split_tokens * (op.latent + op.rope)));
  buffers.scores.resize(static_cast<std::size_t>(op.split_tokens));
  buffers.part.resize(static_cast<std::size_t>(op.latent));
  std::vector<Running> running(static_cast<std::size_t>(op.query_rows * op.heads));
  for (std::int64_t b = 0; b < op.requests; ++b) DecodeRequest(op, b, buffers, running);
}

}  // namespace kvasir::cpu
