// Attention on tensor cores (mma.sync, sm_80 and newer): a block takes a split and kItems (row, head) pairs,
// in tiles of kKeys keys that are copied while the tile before is computed. Queries and weights are rounded
// to bf16, sums are floats.
//
// Four warps. Scores: warp w takes pairs 16 (w / 2) .. and keys 16 (w % 2) .. of the tile. Values: each warp
// takes a quarter of the value elements for all pairs, and keeps its sums in registers from tile to tile.
#include "worker/cuda/decode.cuh"
#include "worker/cuda/ptx.cuh"
#include "worker/cuda/shared_bytes.h"

namespace kvasir::cuda {
namespace {

constexpr int kItems = kMmaItems;
constexpr int kKeys = kMmaKeys;
constexpr int kPad = kMmaPad;
constexpr int kHalves = kItems / 16;                                     // of the pairs, 16 rows of an mma
constexpr int kColumns = static_cast<int>(kDecodeValueDimMost / 4 / 8);  // of 8 value elements, of one warp
constexpr int kWeightStride = kKeys + kPad;
constexpr int kScoreStride = kKeys + 1;

// Where a block's data lies in its shared memory.
struct Tiles {
  std::uint16_t* q;        // [kItems, key_dim + kPad]
  std::uint16_t* keys;     // [2, kKeys, key_dim + kPad]: the tile that is computed, and the next
  std::uint16_t* weights;  // [kItems, kWeightStride]
  float* scores;           // [kItems, kScoreStride]
  float* largest;          // [kItems]
  float* sum;              // [kItems]
  float* keep;             // [kItems]: what a tile leaves of what was before
  int* bad;                // [kKeys]: a key that is no number, where not all pairs see it
  std::int64_t stride;     // of queries and keys
};

[[nodiscard]] __device__ Tiles TilesOf(const Paged& op, unsigned char* shared) {
  Tiles tiles;
  tiles.stride = op.key_dim + kPad;
  tiles.q = reinterpret_cast<std::uint16_t*>(shared);
  tiles.keys = tiles.q + kItems * tiles.stride;
  tiles.weights = tiles.keys + 2 * kKeys * tiles.stride;
  tiles.scores = reinterpret_cast<float*>(tiles.weights + kItems * kWeightStride);
  tiles.largest = tiles.scores + kItems * kScoreStride;
  tiles.sum = tiles.largest + kItems;
  tiles.keep = tiles.sum + kItems;
  tiles.bad = reinterpret_cast<int*>(tiles.keep + kItems);
  return tiles;
}

__device__ void LoadQueries(const Paged& op, const Part& part, const Tiles& tiles) {
  for (std::int64_t at = threadIdx.x; at < kItems * op.key_dim; at += kBlock) {
    const std::int64_t i = at / op.key_dim;
    const std::int64_t k = at % op.key_dim;
    const float q = i < part.items ? op.q[part.RowHeadOf(op, i) * op.key_dim + k] : 0;
    tiles.q[i * tiles.stride + k] = FloatToBf16(q);
  }
  if (threadIdx.x < kItems) {
    tiles.largest[threadIdx.x] = -INFINITY;
    tiles.sum[threadIdx.x] = 0;
  }
}

// Starts the copy of `count` keys.
__device__ void CopyTile(const Paged& op, const Part& part, std::int64_t begin, std::int64_t count,
                         const Tiles& tiles, std::uint16_t* keys) {
  constexpr std::int64_t kChunk = 8;  // elements of 16 bytes
  const std::int64_t chunks = op.key_dim / kChunk;
  for (std::int64_t at = threadIdx.x; at < count * chunks; at += kBlock) {
    const std::int64_t j = at / chunks;
    const std::int64_t k = at % chunks * kChunk;
    CopyAsync(keys + j * tiles.stride + k, CacheRow(op, part, begin + j) + k * 2);
  }
  CommitCopies();
}

// Of a tile that not all pairs see whole: rows beyond its keys become zeros, for what stood there may be no
// number and must not meet a weight of 0. So must keys that are no numbers, where some pair does not see
// them: they are marked in `bad` for those that do.
__device__ void CleanTile(const Paged& op, std::int64_t seen_by_all, std::int64_t count, const Tiles& tiles,
                          std::uint16_t* keys) {
  if (threadIdx.x < kKeys) tiles.bad[threadIdx.x] = 0;
  __syncthreads();
  const std::int64_t first = seen_by_all * op.key_dim + threadIdx.x;
  for (std::int64_t at = first; at < count * op.key_dim; at += kBlock) {
    const std::uint16_t element = keys[at / op.key_dim * tiles.stride + at % op.key_dim];
    if ((element & 0x7f80U) == 0x7f80U) tiles.bad[at / op.key_dim] = 1;
  }
  __syncthreads();
  for (std::int64_t at = first; at < kKeys * op.key_dim; at += kBlock) {
    const std::int64_t j = at / op.key_dim;
    if (j >= count || tiles.bad[j] != 0) keys[j * tiles.stride + at % op.key_dim] = 0;
  }
  __syncthreads();
}

[[nodiscard]] __device__ std::int64_t SeenByAll(const Paged& op, const Part& part, std::int64_t begin,
                                                std::int64_t count) {
  std::int64_t seen = count;
  for (std::int64_t i = 0; i < part.items; ++i) {
    const std::int64_t visible = VisibleTo(op, part, i, begin, count);
    if (visible < seen) seen = visible;
  }
  return seen;
}

// Two neighbouring elements.
[[nodiscard]] __device__ std::uint32_t Pair(const std::uint16_t* at) {
  return *reinterpret_cast<const std::uint32_t*>(at);
}

// The 16 rows from `rows` on and the 16 columns from `column` on.
__device__ void LoadA(std::uint32_t (&a)[4], const std::uint16_t* rows, std::int64_t stride,
                      std::int64_t column) {
  const int g = static_cast<int>(threadIdx.x) % kWarp / 4;
  const std::uint16_t* at = rows + g * stride + column + static_cast<int>(threadIdx.x) % 4 * 2;
  a[0] = Pair(at);
  a[1] = Pair(at + 8 * stride);
  a[2] = Pair(at + 8);
  a[3] = Pair(at + 8 * stride + 8);
}

__device__ void Score(const Paged& op, const Tiles& tiles, const std::uint16_t* keys) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int g = static_cast<int>(threadIdx.x) % kWarp / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  const int first_item = warp / 2 * 16;
  const int first_key = warp % 2 * 16;
  float sums[2][4] = {};
  for (std::int64_t k = 0; k < op.key_dim; k += 16) {
    std::uint32_t a[4];
    LoadA(a, tiles.q + first_item * tiles.stride, tiles.stride, k);
    KVASIR_UNROLL
    for (int n = 0; n < 2; ++n) {
      const std::uint16_t* at = keys + (first_key + n * 8 + g) * tiles.stride + k + 2 * t;
      const std::uint32_t b[2] = {Pair(at), Pair(at + 8)};
      MultiplyAdd(sums[n], a, b);
    }
  }
  KVASIR_UNROLL
  for (int n = 0; n < 2; ++n) {
    KVASIR_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int item = first_item + g + i / 2 * 8;
      const int key = first_key + n * 8 + 2 * t + i % 2;
      tiles.scores[item * kScoreStride + key] = sums[n][i] * op.scale;
    }
  }
}

// Scores become weights, zeros where nothing is seen. A NaN score does not become the largest; it reaches the
// sum through exp, and so the lse; and so does a key that was no number.
__device__ void Weigh(const Paged& op, const Part& part, std::int64_t begin, std::int64_t count,
                      std::int64_t seen_by_all, const Tiles& tiles) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i >= kItems) return;
  const std::int64_t visible = VisibleTo(op, part, i, begin, count);
  const float* scores = tiles.scores + i * kScoreStride;
  std::uint16_t* weights = tiles.weights + i * kWeightStride;
  float largest = tiles.largest[i];
  for (std::int64_t j = 0; j < visible; ++j) largest = scores[j] > largest ? scores[j] : largest;
  float sum = 0;
  for (std::int64_t j = 0; j < kKeys; ++j) {
    const float weight = j < visible ? expf(scores[j] - largest) : 0;
    weights[j] = FloatToBf16(weight);
    sum += weight;
    if (j >= seen_by_all && j < visible && tiles.bad[j] != 0) sum = NAN;
  }
  tiles.keep[i] = visible == 0 ? 1 : expf(tiles.largest[i] - largest);
  if (visible == 0) return;
  tiles.sum[i] = tiles.sum[i] * tiles.keep[i] + sum;
  tiles.largest[i] = largest;
}

// out = keep * out + weights * values, for this warp's columns.
__device__ void AddValues(const Paged& op, const Tiles& tiles, const std::uint16_t* keys,
                          float (&out)[kHalves][kColumns][4]) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int columns = static_cast<int>(op.value_dim) / 4 / 8;
  std::uint32_t a[kHalves][kKeys / 16][4];
  KVASIR_UNROLL
  for (int m = 0; m < kHalves; ++m) {
    KVASIR_UNROLL
    for (int k = 0; k < kKeys / 16; ++k)
      LoadA(a[m][k], tiles.weights + m * 16 * kWeightStride, kWeightStride, k * 16);
  }
  KVASIR_UNROLL
  for (int n = 0; n < kColumns; ++n) {
    if (n >= columns) break;
    const int column = (warp * columns + n) * 8;
    KVASIR_UNROLL
    for (int m = 0; m < kHalves; ++m) {
      KVASIR_UNROLL
      for (int i = 0; i < 4; ++i) out[m][n][i] *= tiles.keep[m * 16 + lane / 4 + i / 2 * 8];
    }
    KVASIR_UNROLL
    for (int k = 0; k < kKeys / 16; ++k) {
      std::uint32_t b[2];
      LoadTransposed(b, keys + (k * 16 + lane % 16) * tiles.stride + column);
      KVASIR_UNROLL
      for (int m = 0; m < kHalves; ++m) MultiplyAdd(out[m][n], a[m][k], b);
    }
  }
}

__device__ void WriteSplit(const Paged& op, const Part& part, const Tiles& tiles,
                           const float (&out)[kHalves][kColumns][4]) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int columns = static_cast<int>(op.value_dim) / 4 / 8;
  KVASIR_UNROLL
  for (int m = 0; m < kHalves; ++m) {
    KVASIR_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      KVASIR_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int item = m * 16 + lane / 4 + i / 2 * 8;
        if (n >= columns || item >= part.items) continue;
        const int v = (warp * columns + n) * 8 + lane % 4 * 2 + i % 2;
        op.scratch.OutOf(part.split, part.RowHeadOf(op, item))[v] = out[m][n][i];
      }
    }
  }
  if (threadIdx.x >= static_cast<unsigned>(part.items)) return;
  const std::int64_t row_head = part.RowHeadOf(op, threadIdx.x);
  op.scratch.LargestOf(part.split, row_head) = tiles.largest[threadIdx.x];
  op.scratch.SumOf(part.split, row_head) = tiles.sum[threadIdx.x];
}

__global__ void __launch_bounds__(kBlock) MmaKernel(Paged op) {
  KVASIR_DYNAMIC_SHARED(unsigned char, shared);
  const Part part = PartOf(op, kItems);
  const std::int64_t first = part.split * op.split_tokens;
  std::int64_t end = LongestBound(op, part);
  if (end <= first) return;  // no key is visible: nothing is added, not even a zero
  if (end > first + op.split_tokens) end = first + op.split_tokens;
  const Tiles tiles = TilesOf(op, shared);
  const auto keys_from = [end](std::int64_t begin) {
    return begin >= end ? 0 : end - begin < kKeys ? end - begin : std::int64_t{kKeys};
  };
  CopyTile(op, part, first, keys_from(first), tiles, tiles.keys);
  LoadQueries(op, part, tiles);
  float out[kHalves][kColumns][4] = {};
  std::int64_t stage = 0;  // where the tile's keys begin
  for (std::int64_t begin = first; begin < end; begin += kKeys) {
    const std::int64_t count = keys_from(begin);
    std::uint16_t* keys = tiles.keys + stage;
    stage = kKeys * tiles.stride - stage;
    CopyTile(op, part, begin + kKeys, keys_from(begin + kKeys), tiles, tiles.keys + stage);
    WaitForCopies<1>();
    __syncthreads();
    const std::int64_t seen_by_all = SeenByAll(op, part, begin, count);
    if (seen_by_all < kKeys) CleanTile(op, seen_by_all, count, tiles, keys);
    Score(op, tiles, keys);
    __syncthreads();
    Weigh(op, part, begin, count, seen_by_all, tiles);
    __syncthreads();
    AddValues(op, tiles, keys, out);
    __syncthreads();
  }
  WriteSplit(op, part, tiles, out);
}

}  // namespace

void SplitByMma(const Paged& op, cudaStream_t stream) {
  const auto shared = static_cast<std::size_t>(MmaSharedBytes(op.key_dim));
  (void)cudaFuncSetAttribute(MmaKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared));
  KVASIR_LAUNCH(MmaKernel, SplitGrid(op, kItems), kBlock, shared, stream, op);
}

}  // namespace kvasir::cuda
