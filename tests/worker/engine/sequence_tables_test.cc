// Block tables over pools of every lifetime, also of those that no backend runs yet.
#include "worker/engine/sequence_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/plan/admission.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "worker/engine/arena_layout.h"

namespace kvasir {
namespace {

using testing::MakePoolPlan;
using testing::PoolSketch;
using testing::StatusIs;

constexpr std::int64_t kWindow = 6;

Plan MixedPlan(std::int64_t parents) {
  return MakePoolPlan({PoolSketch{.name = "tokens"},
                       PoolSketch{.name = "window",
                                  .lifetime = {.kind = LifetimeKind::kBoundedWindow, .window = kWindow},
                                  .block_tokens = 2},
                       PoolSketch{.name = "state",
                                  .lifetime = {.kind = LifetimeKind::kPerSequence, .copies = 1},
                                  .parts = 3,
                                  .blocks_per_parent = 2}},
                      parents, /*max_requests=*/4, /*context_tokens=*/64);
}

std::vector<BlockId> Held(const SequenceTable& table, std::size_t pool) {
  std::vector<BlockId> blocks = table.idle[pool];
  for (const BlockId block : table.columns[pool]) {
    if (block.value() != 0) blocks.push_back(block);
  }
  return blocks;
}

TEST(SequenceTablesTest, ReservesTheWorstCaseOfEveryLifetime) {
  const Plan plan = MixedPlan(20);
  auto tables = SequenceTables::Create(plan);
  KVASIR_ASSERT_OK(tables);
  EXPECT_EQ(tables->used_blocks(PoolId(1)), 4);  // the chunk reserve: 8 tokens of 2
  const auto table = tables->Reserve(30);
  KVASIR_ASSERT_OK(table);
  EXPECT_EQ(table->columns[0].size(), 8U);   // ceil(30 / 4)
  EXPECT_EQ(table->columns[1].size(), 15U);  // ceil(30 / 2), nothing in them yet
  EXPECT_EQ(Held(*table, 1).size(), 4U);     // 6 tokens touch at most 4 blocks of 2
  EXPECT_EQ(table->columns[2].size(), 3U);   // one copy, 3 parts
}

// A sequence is prefilled in chunks and decodes to its limit: at each step all columns that its rows see or
// write hold blocks of its own, and between steps it holds no more than its share.
TEST(SequenceTablesTest, AWindowKeepsItsBlocksAndBorrowsForAChunk) {
  const Plan plan = MixedPlan(20);
  auto tables = SequenceTables::Create(plan);
  KVASIR_ASSERT_OK(tables);
  auto table = tables->Reserve(30);
  KVASIR_ASSERT_OK(table);
  const std::int64_t used = tables->used_blocks(PoolId(1));
  std::int64_t committed = 0;
  std::size_t most = 0;
  for (std::int64_t rows = 8; committed < 29; rows = committed < 16 ? 8 : 1) {
    tables->Place(*table, committed, rows);
    const std::int64_t oldest = std::max<std::int64_t>(0, committed - kWindow + 1);
    std::set<BlockId> seen;
    for (std::int64_t position = oldest; position < committed + rows; ++position) {
      const BlockId block = table->columns[1][static_cast<std::size_t>(position / 2)];
      ASSERT_NE(block.value(), 0) << "position " << position << " of a step at " << committed;
      seen.insert(block);
    }
    const std::vector<BlockId> held = Held(*table, 1);
    EXPECT_EQ(std::set<BlockId>(held.begin(), held.end()).size(), held.size());
    most = std::max(most, held.size());
    committed += rows;
    tables->Settle(*table, committed);
    EXPECT_EQ(Held(*table, 1).size(), 4U);
    EXPECT_EQ(tables->used_blocks(PoolId(1)), used);
  }
  EXPECT_GT(most, 4U);  // a chunk did borrow
  tables->Release(*table);
  EXPECT_EQ(tables->used_blocks(PoolId(1)), 4);
}

TEST(SequenceTablesTest, ASequenceCancelledInAChunkGivesBackWhatItBorrowed) {
  const Plan plan = MixedPlan(20);
  auto tables = SequenceTables::Create(plan);
  KVASIR_ASSERT_OK(tables);
  const std::int64_t free = tables->free_parents();
  for (int round = 0; round < 5; ++round) {
    auto table = tables->Reserve(30);
    KVASIR_ASSERT_OK(table);
    for (std::int64_t at = 0; at <= 8; at += 8) tables->Place(*table, at, 8);
    EXPECT_GT(Held(*table, 1).size(), 4U);
    tables->Release(*table);
    EXPECT_EQ(tables->used_blocks(PoolId(1)), 4);
    EXPECT_EQ(tables->used_blocks(PoolId(0)), 0);
    EXPECT_EQ(tables->used_blocks(PoolId(2)), 0);
    EXPECT_EQ(tables->free_parents(), free);
  }
}

TEST(SequenceTablesTest, SaysWhichPoolIsTooSmall) {
  const auto expect_refused = [](std::int64_t parents, std::int64_t limit, const char* message) {
    auto tables = SequenceTables::Create(MixedPlan(parents));
    KVASIR_ASSERT_OK(tables);
    EXPECT_THAT(tables->Reserve(limit), StatusIs(absl::StatusCode::kInvalidArgument, message));
  };
  expect_refused(4, 60, "60 tokens can never be admitted by this plan: pool tokens: short by 3 blocks");
  expect_refused(4, 30, "pool window: short by 4 blocks: 8 needed, 4 free");
  expect_refused(5, 10, "pool state: short by 1 blocks: 3 needed, 2 free");
}

}  // namespace
}  // namespace kvasir
