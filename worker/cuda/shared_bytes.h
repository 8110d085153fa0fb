// Shared memory of a block, by shape: the kernels lay it out so, and dispatch judges it before.
#ifndef KVASIR_WORKER_CUDA_SHARED_BYTES_H_
#define KVASIR_WORKER_CUDA_SHARED_BYTES_H_

#include <cstdint>

namespace kvasir::cuda {

inline constexpr std::int64_t kFloatBytes = 4;
// What a block has without asking for more.
inline constexpr std::int64_t kSharedBytesUnasked = std::int64_t{48} << 10;

// decode.cu: (row, head) pairs of a block, and keys at a time.
inline constexpr int kDecodeItems = 16;
inline constexpr int kDecodeTile = 16;

// decode_mma.cu: the same, and elements by which a row is longer, so that rows meet in no bank.
inline constexpr int kMmaItems = 32;
inline constexpr int kMmaKeys = 32;
inline constexpr int kMmaPad = 8;

// Queries, two tiles of keys, weights; scores, the softmax so far, and a mark for each key.
[[nodiscard]] constexpr std::int64_t MmaSharedBytes(std::int64_t key_dim) {
  const std::int64_t halves =
      (kMmaItems + 2 * kMmaKeys) * (key_dim + kMmaPad) + std::int64_t{kMmaItems} * (kMmaKeys + kMmaPad);
  return halves * 2 + (std::int64_t{kMmaItems} * (kMmaKeys + 1 + 3) + kMmaKeys) * kFloatBytes;
}

// Queries, keys, values (for MLA they stand in the keys), scores, and the softmax so far.
[[nodiscard]] constexpr std::int64_t DecodeSharedBytes(std::int64_t key_dim, std::int64_t value_dim,
                                                       bool values_in_keys) {
  const std::int64_t values = values_in_keys ? 0 : kDecodeTile * (value_dim + 1);
  return ((kDecodeItems + kDecodeTile) * (key_dim + 1) + values +
          std::int64_t{kDecodeItems} * (kDecodeTile + 3)) *
         kFloatBytes;
}

// kda.cu: a state, whose rows are one longer, and three vectors.
[[nodiscard]] constexpr std::int64_t KdaSharedBytes(std::int64_t dim) {
  return (dim * (dim + 1) + 3 * dim) * kFloatBytes;
}

// experts.cu: scores, choices, groups; and a byte for each expert.
[[nodiscard]] constexpr std::int64_t RouteSharedBytes(std::int64_t experts, std::int64_t groups) {
  return (2 * experts + groups) * kFloatBytes + experts;
}

// norm_rope.cu: a score for each source; combine.cu: a weight for each rank.
[[nodiscard]] constexpr std::int64_t FloatsBytes(std::int64_t count) { return count * kFloatBytes; }

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_SHARED_BYTES_H_
