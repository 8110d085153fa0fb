// The DCP formulas against a count of every position, for all small worlds.
#include "common/geometry/context_shard.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace kvasir {
namespace {

// What the definition says: round-robin in runs of `interleave` tokens.
std::int64_t OwnerByWalking(std::int64_t ranks, std::int64_t interleave, std::int64_t position) {
  std::int64_t owner = 0;
  std::int64_t run = 0;
  for (std::int64_t p = 0; p < position; ++p) {
    if (++run == interleave) {
      run = 0;
      owner = owner + 1 == ranks ? 0 : owner + 1;
    }
  }
  return owner;
}

TEST(ContextShardTest, AgreesWithACountOfEveryPosition) {
  for (const std::int64_t ranks : {1, 2, 3, 4, 8}) {
    for (const std::int64_t interleave : {1, 2, 3, 16}) {
      std::vector<std::int64_t> held(static_cast<std::size_t>(ranks), 0);
      for (std::int64_t position = 0; position < 150; ++position) {
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const ContextShard shard{ranks, interleave, rank};
          ASSERT_EQ(LocalLength(shard, position), held[static_cast<std::size_t>(rank)])
              << "ranks " << ranks << " interleave " << interleave << " length " << position;
        }
        const std::int64_t owner = OwnerByWalking(ranks, interleave, position);
        const ContextShard shard{ranks, interleave, owner};
        ASSERT_EQ(OwnerOf(shard, position), owner);
        ASSERT_EQ(LocalPosition(shard, position), held[static_cast<std::size_t>(owner)]);
        ASSERT_EQ(GlobalPosition(shard, LocalPosition(shard, position)), position);
        ++held[static_cast<std::size_t>(owner)];
      }
    }
  }
}

TEST(ContextShardTest, RowBoundsCountTheVisibleKeysOfThisRank) {
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    for (const std::int64_t interleave : {1, 4}) {
      for (const std::int64_t rows : {1, 4, 8}) {
        for (std::int64_t length = rows; length < 70; ++length) {
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t rank = 0; rank < ranks; ++rank) {
              const ContextShard shard{ranks, interleave, rank};
              std::int64_t causal = 0;
              std::int64_t all = 0;
              for (std::int64_t key = 0; key < length; ++key) {
                if (OwnerOf(shard, key) != rank) continue;
                ++all;
                // The row stands at position length - rows + row and sees itself and what lies before it.
                if (key <= length - rows + row) ++causal;
              }
              ASSERT_EQ(LocalRowBound(shard, length, rows, row, /*causal=*/true), causal);
              ASSERT_EQ(LocalRowBound(shard, length, rows, row, /*causal=*/false), all);
            }
          }
        }
      }
    }
  }
}

TEST(ContextShardTest, PaddedRowsSeeNothing) {
  const ContextShard shard{2, 1, 0};
  EXPECT_EQ(LocalRowBound(shard, 100, 3, 3, true), 0);
  EXPECT_EQ(LocalRowBound(shard, 100, 3, 3, false), 0);
}

TEST(ContextShardTest, TheTemptingShortcutIsWrong) {
  // Length 128, 4 rows, row 0, 2 ranks, rank 1: the bound is 125 tokens, 62 of them on rank 1, while
  // subtracting the query offset from the local length gives 61 (known fault of a peer: vllm#51705).
  const ContextShard shard{2, 1, 1};
  EXPECT_EQ(LocalRowBound(shard, 128, 4, 0, true), 62);
  EXPECT_NE(LocalLength(shard, 128) - 3, 62);
}

}  // namespace
}  // namespace kvasir
