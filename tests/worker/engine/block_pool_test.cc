#include "worker/engine/block_pool.h"

#include <gtest/gtest.h>

#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::MakePoolPlan;
using testing::PoolSketch;
using testing::StatusIs;

std::vector<std::int64_t> Ids(const std::vector<BlockId>& blocks) {
  std::vector<std::int64_t> ids;
  ids.reserve(blocks.size());
  for (const BlockId block : blocks) ids.push_back(block.value());
  return ids;
}

std::vector<std::int64_t> Ids(const std::vector<ParentId>& parents) {
  std::vector<std::int64_t> ids;
  ids.reserve(parents.size());
  for (const ParentId parent : parents) ids.push_back(parent.value());
  return ids;
}

using List = std::vector<std::int64_t>;

// Two pools, 2 and 3 blocks a parent, 4 parents of which one is the null parent.
Plan TwoPools() {
  return MakePoolPlan(
      {PoolSketch{.name = "a", .blocks_per_parent = 2}, PoolSketch{.name = "b", .blocks_per_parent = 3}},
      /*parents=*/4, /*max_requests=*/4, /*context_tokens=*/64);
}

TEST(BlockPoolTest, TakesTheLowestFreeBlockThenTheLowestFreeParent) {
  BlockPools pools(TwoPools());
  EXPECT_EQ(pools.free_parents(), 3);
  const auto first = pools.Allocate(List{3, 1});
  KVASIR_ASSERT_OK(first);
  EXPECT_EQ(Ids((*first)[0]), (List{2, 3, 4}));  // parents 1 and 2; block 5 stays free
  EXPECT_EQ(Ids((*first)[1]), (List{9}));        // parent 3
  EXPECT_EQ(pools.free_parents(), 0);
  EXPECT_EQ(pools.used_blocks(PoolId(0)), 3);
  const auto second = pools.Allocate(List{1, 2});
  KVASIR_ASSERT_OK(second);
  EXPECT_EQ(Ids((*second)[0]), (List{5}));
  EXPECT_EQ(Ids((*second)[1]), (List{10, 11}));
}

TEST(BlockPoolTest, NamesThePoolAndTheShortfallAndTakesNothing) {
  BlockPools pools(TwoPools());
  EXPECT_THAT(pools.Allocate(List{4, 5}),
              StatusIs(absl::StatusCode::kResourceExhausted, "pool b: short by 2 blocks: 5 needed, 3 free"));
  EXPECT_EQ(pools.free_parents(), 3);
  EXPECT_THAT(pools.Allocate(List{7, 0}),
              StatusIs(absl::StatusCode::kResourceExhausted, "pool a: short by 1 blocks: 7 needed, 6 free"));
  EXPECT_THAT(pools.FitsWhenEmpty(List{2, 7}),
              StatusIs(absl::StatusCode::kResourceExhausted, "pool b: short by 1 blocks"));
  KVASIR_EXPECT_OK(pools.FitsWhenEmpty(List{2, 6}));
}

TEST(BlockPoolTest, AnEmptyParentReturnsAtOnceAndTheLowestIsTakenNext) {
  BlockPools pools(TwoPools());
  const auto blocks = pools.Allocate(List{6, 0});
  KVASIR_ASSERT_OK(blocks);
  pools.Free(PoolId(0), std::vector<BlockId>{BlockId(6)});
  EXPECT_EQ(pools.free_parents(), 0);  // block 7 still holds parent 3
  pools.Free(PoolId(0), std::vector<BlockId>{BlockId(7), BlockId(2), BlockId(3)});
  EXPECT_EQ(pools.free_parents(), 2);
  const auto other = pools.Allocate(List{0, 1});
  KVASIR_ASSERT_OK(other);
  EXPECT_EQ(Ids((*other)[1]), (List{3}));  // parent 1, the lower of 1 and 3
}

TEST(BlockPoolTest, ReportsAParentThatChangesItsPoolOnce) {
  BlockPools pools(TwoPools());
  const auto a = pools.Allocate(List{4, 0});
  KVASIR_ASSERT_OK(a);
  EXPECT_EQ(Ids(pools.TakeParentsToZero()), List{});  // the arena starts zeroed
  pools.Free(PoolId(0), (*a)[0]);
  const auto again = pools.Allocate(List{2, 0});
  KVASIR_ASSERT_OK(again);
  EXPECT_EQ(Ids(pools.TakeParentsToZero()), List{});  // parent 1 stays with pool a
  const auto b = pools.Allocate(List{0, 4});
  KVASIR_ASSERT_OK(b);
  EXPECT_EQ(Ids(pools.TakeParentsToZero()), (List{2}));  // parent 3 had no pool before
  EXPECT_EQ(Ids(pools.TakeParentsToZero()), List{});
}

}  // namespace
}  // namespace kvasir
