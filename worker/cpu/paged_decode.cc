#include "worker/cpu/paged_decode.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "worker/cpu/cache_row.h"
#include "worker/cpu/lanes.h"

namespace kvasir::cpu {
namespace {

// What both operations are: MLA has one kv head, whose values are the front of its keys. Of a token's row of
// `row_dim` elements, kv head g has its keys from g * key_step on, its values from value_begin + g *
// value_step on.
struct PagedDecode {
  const float* q;  // [rows, heads, key_dim]
  const std::byte* arena;
  PageGeometry page;
  DType dtype;
  const std::int64_t* block_table;  // [requests, table_width]
  const std::int64_t* bounds;       // [rows]
  float* out;                       // [rows, heads, value_dim]
  float* lse;                       // [rows, heads]; null: not wanted
  std::int64_t requests, query_rows, heads, kv_heads, row_dim, key_dim, value_dim;
  std::int64_t key_step, value_begin, value_step, table_width, split_tokens;
  float scale;
};

constexpr float kNoKeys = -std::numeric_limits<float>::infinity();

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
void SumValues(const float* weights, const SplitView& view, std::int64_t keys, float* out) {
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
void AttendSplit(const SplitView& view, const float* q, std::int64_t keys, SplitBuffers& buffers,
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

SplitView ViewOf(const PagedDecode& op, const SplitBuffers& buffers, std::int64_t head) {
  const std::int64_t kv_head = head / (op.heads / op.kv_heads);
  const float* tile = buffers.tile.data();
  return {.keys = tile + kv_head * op.key_step,
          .values = tile + op.value_begin + kv_head * op.value_step,
          .stride = op.row_dim,
          .key_dim = op.key_dim,
          .value_dim = op.value_dim,
          .scale = op.scale};
}

void DecodeRequest(const PagedDecode& op, std::int64_t request, SplitBuffers& buffers,
                   std::vector<Running>& running) {
  const std::int64_t* table = op.block_table + request * op.table_width;
  const std::int64_t* bounds = op.bounds + request * op.query_rows;
  const std::int64_t first_head = request * op.query_rows * op.heads;
  const std::int64_t row_heads = op.query_rows * op.heads;
  float* out = op.out + first_head * op.value_dim;
  std::fill(out, out + row_heads * op.value_dim, 0.0F);
  std::fill(running.begin(), running.end(), Running{});

  const std::int64_t longest = *std::max_element(bounds, bounds + op.query_rows);
  for (std::int64_t begin = 0; begin < longest; begin += op.split_tokens) {
    const std::int64_t loaded = std::min(op.split_tokens, longest - begin);
    for (std::int64_t j = 0; j < loaded; ++j) {
      LoadRow(CacheRow(op.arena, op.page, table, begin + j), op.dtype, op.row_dim,
              buffers.tile.data() + j * op.row_dim);
    }
    for (std::int64_t index = 0; index < row_heads; ++index) {
      const std::int64_t keys = std::min(op.split_tokens, bounds[index / op.heads] - begin);
      if (keys <= 0) continue;  // no visible key in this split: nothing is added, not even a zero
      AttendSplit(ViewOf(op, buffers, index % op.heads), op.q + (first_head + index) * op.key_dim, keys,
                  buffers, running[static_cast<std::size_t>(index)], out + index * op.value_dim);
    }
  }
  for (std::int64_t index = 0; index < row_heads; ++index) {
    const Running& state = running[static_cast<std::size_t>(index)];
    const bool empty = bounds[index / op.heads] <= 0;
    if (op.lse != nullptr) op.lse[first_head + index] = empty ? kNoKeys : state.largest + std::log(state.sum);
    if (empty) continue;
    const float inverse = 1.0F / state.sum;
    for (std::int64_t i = 0; i < op.value_dim; ++i) out[index * op.value_dim + i] *= inverse;
  }
}

void Decode(const PagedDecode& op) {
  SplitBuffers buffers(op.split_tokens, op.row_dim, op.value_dim);
  std::vector<Running> running(static_cast<std::size_t>(op.query_rows * op.heads));
  for (std::int64_t b = 0; b < op.requests; ++b) DecodeRequest(op, b, buffers, running);
}

}  // namespace

void MlaDecode(const MlaDecodeOp& op) {
  const std::int64_t width = op.latent + op.rope;
  Decode(PagedDecode{.q = op.q,
                     .arena = op.arena,
                     .page = op.page,
                     .dtype = op.dtype,
                     .block_table = op.block_table,
                     .bounds = op.bounds,
                     .out = op.out,
                     .lse = op.lse,
                     .requests = op.requests,
                     .query_rows = op.query_rows,
                     .heads = op.heads,
                     .kv_heads = 1,
                     .row_dim = width,
                     .key_dim = width,
                     .value_dim = op.latent,
                     .key_step = 0,
                     .value_begin = 0,
                     .value_step = 0,
                     .table_width = op.table_width,
                     .split_tokens = op.split_tokens,
                     .scale = op.scale});
}

void GqaDecode(const GqaDecodeOp& op) {
  Decode(PagedDecode{.q = op.q,
                     .arena = op.arena,
                     .page = op.page,
                     .dtype = op.dtype,
                     .block_table = op.block_table,
                     .bounds = op.bounds,
                     .out = op.out,
                     .lse = nullptr,
                     .requests = op.requests,
                     .query_rows = op.query_rows,
                     .heads = op.heads,
                     .kv_heads = op.kv_heads,
                     .row_dim = op.kv_heads * (op.key_dim + op.value_dim),
                     .key_dim = op.key_dim,
                     .value_dim = op.value_dim,
                     .key_step = op.key_dim,
                     .value_begin = op.kv_heads * op.key_dim,
                     .value_step = op.value_dim,
                     .table_width = op.table_width,
                     .split_tokens = op.split_tokens,
                     .scale = op.scale});
}

}  // namespace kvasir::cpu
