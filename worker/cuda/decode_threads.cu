// Paged attention over splits of the context, in two kernels: a block per split and kItems (row, head) pairs
// keeps the softmax of its split; then a block per (row, head) merges the splits in ascending order. Both
// multiples, of the split and of the tile inside it, are fixed, so that a row's bits depend on its own keys
// alone.
//
// Shared memory of a block: the items' queries, a tile of keys (for MLA its values too) and one of values,
// each row one float longer than it needs, so that threads of different rows meet in no bank; scores, and the
// softmax so far.
#include "worker/cuda/decode.cuh"
#include "worker/cuda/shared_bytes.h"

namespace kvasir::cuda {
namespace {

constexpr int kItems = kDecodeItems;                 // (row, head) pairs of a block
constexpr int kTile = kDecodeTile;                   // keys at a time
constexpr int kDims = kDecodeValueDimMost / kBlock;  // value elements of a thread

// Where a block's data lies in its shared memory.
struct Tiles {
  float* q;        // [kItems, key_dim + 1]
  float* keys;     // [kTile, key_dim + 1]
  float* values;   // [kTile, value_stride]; `keys` where values stand in keys
  float* scores;   // [kItems, kTile], then weights
  float* largest;  // [kItems]
  float* sum;      // [kItems]
  float* keep;     // [kItems]: what a tile leaves of what was before
  std::int64_t value_stride;
};

[[nodiscard]] __device__ Tiles TilesOf(const Paged& op, float* shared) {
  Tiles tiles;
  tiles.q = shared;
  tiles.keys = tiles.q + kItems * (op.key_dim + 1);
  float* next = tiles.keys + kTile * (op.key_dim + 1);
  tiles.values = op.values_in_keys ? tiles.keys : next;
  tiles.value_stride = op.values_in_keys ? op.key_dim + 1 : op.value_dim + 1;
  if (!op.values_in_keys) next += kTile * tiles.value_stride;
  tiles.scores = next;
  tiles.largest = tiles.scores + kItems * kTile;
  tiles.sum = tiles.largest + kItems;
  tiles.keep = tiles.sum + kItems;
  return tiles;
}

__device__ void LoadQueries(const Paged& op, const Part& part, const Tiles& tiles) {
  for (std::int64_t at = threadIdx.x; at < part.items * op.key_dim; at += kBlock) {
    const std::int64_t i = at / op.key_dim;
    const std::int64_t k = at % op.key_dim;
    tiles.q[i * (op.key_dim + 1) + k] = op.q[part.RowHeadOf(op, i) * op.key_dim + k];
  }
  if (threadIdx.x < kItems) {
    tiles.largest[threadIdx.x] = -INFINITY;
    tiles.sum[threadIdx.x] = 0;
  }
}

__device__ void LoadTile(const Paged& op, const Part& part, std::int64_t begin, std::int64_t count,
                         const Tiles& tiles) {
  for (std::int64_t at = threadIdx.x; at < count * op.key_dim; at += kBlock) {
    const std::int64_t j = at / op.key_dim;
    const std::int64_t k = at % op.key_dim;
    tiles.keys[j * (op.key_dim + 1) + k] =
        LoadElement(CacheRow(op, part, begin + j), op.dtype, part.kv_head * op.key_step + k);
  }
  if (op.values_in_keys) return;
  for (std::int64_t at = threadIdx.x; at < count * op.value_dim; at += kBlock) {
    const std::int64_t j = at / op.value_dim;
    const std::int64_t v = at % op.value_dim;
    tiles.values[j * tiles.value_stride + v] = LoadElement(CacheRow(op, part, begin + j), op.dtype,
                                                           op.value_begin + part.kv_head * op.value_step + v);
  }
}

__device__ void Score(const Paged& op, const Part& part, std::int64_t begin, std::int64_t count,
                      const Tiles& tiles) {
  for (int at = static_cast<int>(threadIdx.x); at < kItems * kTile; at += kBlock) {
    const int i = at / kTile;
    const int j = at % kTile;
    if (j >= VisibleTo(op, part, i, begin, count)) continue;
    const float* q = tiles.q + i * (op.key_dim + 1);
    const float* key = tiles.keys + j * (op.key_dim + 1);
    float dot = 0;
    for (std::int64_t k = 0; k < op.key_dim; ++k) dot += q[k] * key[k];
    tiles.scores[at] = dot * op.scale;
  }
}

// Scores become weights. A NaN score does not become the largest; it reaches the sum through exp, and so the
// lse.
__device__ void Weigh(const Paged& op, const Part& part, std::int64_t begin, std::int64_t count,
                      const Tiles& tiles) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i >= kItems) return;
  const std::int64_t visible = VisibleTo(op, part, i, begin, count);
  tiles.keep[i] = 1;
  if (visible == 0) return;
  float* scores = tiles.scores + i * kTile;
  float largest = tiles.largest[i];
  for (std::int64_t j = 0; j < visible; ++j) largest = scores[j] > largest ? scores[j] : largest;
  float sum = 0;
  for (std::int64_t j = 0; j < visible; ++j) {
    scores[j] = expf(scores[j] - largest);
    sum += scores[j];
  }
  tiles.keep[i] = expf(tiles.largest[i] - largest);
  tiles.sum[i] = tiles.sum[i] * tiles.keep[i] + sum;
  tiles.largest[i] = largest;
}

__global__ void __launch_bounds__(kBlock) SplitKernel(Paged op) {
  KVASIR_DYNAMIC_SHARED(float, shared);
  const Part part = PartOf(op, kItems);
  const std::int64_t first = part.split * op.split_tokens;
  std::int64_t end = LongestBound(op, part);
  if (end <= first) return;  // no key is visible: nothing is added, not even a zero
  if (end > first + op.split_tokens) end = first + op.split_tokens;
  const Tiles tiles = TilesOf(op, shared);
  LoadQueries(op, part, tiles);
  float out[kItems][kDims] = {};
  for (std::int64_t begin = first; begin < end; begin += kTile) {
    const std::int64_t count = end - begin < kTile ? end - begin : kTile;
    LoadTile(op, part, begin, count, tiles);
    __syncthreads();
    Score(op, part, begin, count, tiles);
    __syncthreads();
    Weigh(op, part, begin, count, tiles);
    __syncthreads();
    KVASIR_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const std::int64_t visible = VisibleTo(op, part, i, begin, count);
      KVASIR_UNROLL
      for (int d = 0; d < kDims; ++d) {
        const std::int64_t v = static_cast<int>(threadIdx.x) + d * kBlock;
        if (v >= op.value_dim || visible == 0) continue;
        float sum = 0;
        for (std::int64_t j = 0; j < visible; ++j)
          sum += tiles.scores[i * kTile + j] * tiles.values[j * tiles.value_stride + v];
        out[i][d] = out[i][d] * tiles.keep[i] + sum;
      }
    }
    __syncthreads();
  }
  KVASIR_UNROLL
  for (int i = 0; i < kItems; ++i) {
    if (i >= part.items) break;
    const std::int64_t row_head = part.RowHeadOf(op, i);
    KVASIR_UNROLL
    for (int d = 0; d < kDims; ++d) {
      const std::int64_t v = static_cast<int>(threadIdx.x) + d * kBlock;
      if (v < op.value_dim) op.scratch.OutOf(part.split, row_head)[v] = out[i][d];
    }
    if (threadIdx.x != 0) continue;
    op.scratch.LargestOf(part.split, row_head) = tiles.largest[i];
    op.scratch.SumOf(part.split, row_head) = tiles.sum[i];
  }
}

}  // namespace

void SplitByThreads(const Paged& op, cudaStream_t stream) {
  const auto shared =
      static_cast<std::size_t>(DecodeSharedBytes(op.key_dim, op.value_dim, op.values_in_keys));
  (void)cudaFuncSetAttribute(SplitKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared));
  KVASIR_LAUNCH(SplitKernel, SplitGrid(op, kItems), kBlock, shared, stream, op);
}

}  // namespace kvasir::cuda
