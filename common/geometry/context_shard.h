// Decode context parallelism: which rank of a DCP group holds which token, and how long each rank's part is.
// Source of the formulas: vllm#23734 and #26696 (placement), #51705 (row bounds); brute-force checked in
// tests/common/context_shard_test.cc. All arguments are non-negative; ranks, interleave and block_tokens
// positive.
#ifndef KVASIR_COMMON_GEOMETRY_CONTEXT_SHARD_H_
#define KVASIR_COMMON_GEOMETRY_CONTEXT_SHARD_H_

#include <algorithm>
#include <cstdint>

namespace kvasir {

// N ranks; `interleave` consecutive tokens go to one rank before the next rank's turn. {1, 1, 0} = not
// sharded.
struct ContextShard {
  std::int64_t ranks = 1;
  std::int64_t interleave = 1;
  std::int64_t rank = 0;  // 0 .. ranks-1
};

// The rank that stores position p.
[[nodiscard]] constexpr std::int64_t OwnerOf(const ContextShard& s, std::int64_t position) {
  return (position / s.interleave) % s.ranks;
}

// Position p's place among the tokens of its owner (dense, order-preserving).
[[nodiscard]] constexpr std::int64_t LocalPosition(const ContextShard& s, std::int64_t position) {
  const std::int64_t round = s.interleave * s.ranks;
  return (position / round) * s.interleave + position % s.interleave;
}

// The inverse for this shard's rank: the position of its k-th token.
[[nodiscard]] constexpr std::int64_t GlobalPosition(const ContextShard& s, std::int64_t local) {
  const std::int64_t round = s.interleave * s.ranks;
  return (local / s.interleave) * round + s.rank * s.interleave + local % s.interleave;
}

// How many of the positions 0 .. length-1 this rank stores.
[[nodiscard]] constexpr std::int64_t LocalLength(const ContextShard& s, std::int64_t length) {
  const std::int64_t round = s.interleave * s.ranks;
  const std::int64_t rest = length % round - s.rank * s.interleave;
  return (length / round) * s.interleave + std::clamp<std::int64_t>(rest, 0, s.interleave);
}

// Row i of a pass with `rows` valid query rows over a sequence of `length` tokens (the rows included):
// the exclusive bound, in tokens of the whole sequence, of the keys the row may see.
[[nodiscard]] constexpr std::int64_t RowBound(std::int64_t length, std::int64_t rows, std::int64_t row,
                                              bool causal) {
  if (row >= rows) return 0;
  return causal ? length - rows + row + 1 : length;
}

// The same bound in this rank's own tokens. Subtracting a query offset from LocalLength is wrong: consecutive
// queries do not each own a key on this rank.
[[nodiscard]] constexpr std::int64_t LocalRowBound(const ContextShard& s, std::int64_t length,
                                                   std::int64_t rows, std::int64_t row, bool causal) {
  return LocalLength(s, RowBound(length, rows, row, causal));
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_GEOMETRY_CONTEXT_SHARD_H_
