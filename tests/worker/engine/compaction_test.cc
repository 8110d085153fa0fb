#include "worker/engine/compaction.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <utility>

#include "common/base/checked_math.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_random.h"
#include "worker/engine/sequence_tables.h"

namespace kvasir {
namespace {

using testing::MakePoolPlan;
using testing::PoolSketch;

using List = std::vector<std::int64_t>;

std::vector<BlockId> Blocks(const List& ids) {
  std::vector<BlockId> blocks;
  blocks.reserve(ids.size());
  for (const std::int64_t id : ids) blocks.emplace_back(id);
  return blocks;
}

ParentMove MoveOf(std::int32_t pool, std::int64_t parent, const std::vector<std::pair<int, int>>& blocks) {
  ParentMove move{.pool = PoolId(pool), .parent = ParentId(parent)};
  for (const auto& [from, to] : blocks) move.blocks.push_back({BlockId(from), BlockId(to)});
  return move;
}

// Parents 1, 2 and 3 are full of blocks 4 .. 15 of pool a, parent 4 of blocks of pool b; then `freed` of a
// are freed.
BlockPools FullPools(const List& freed, std::int64_t b_blocks = 4) {
  BlockPools pools(MakePoolPlan({PoolSketch{.name = "a"}, PoolSketch{.name = "b"}}, /*parents=*/5,
                                /*max_requests=*/4, /*context_tokens=*/64));
  EXPECT_TRUE(pools.Allocate(List{12, b_blocks}).ok());
  pools.Free(PoolId(0), Blocks(freed));
  return pools;
}

TEST(CompactionTest, NothingMovesWhileTheSequenceFits) {
  const BlockPools pools = FullPools({5, 6, 7, 9, 10});
  EXPECT_EQ(ChooseMove(pools, List{5, 0}), std::nullopt);
  EXPECT_NE(ChooseMove(pools, List{6, 0}), std::nullopt);
}

TEST(CompactionTest, TheLeastUsedParentGoesToTheLowestFreeBlocks) {
  BlockPools pools = FullPools({5, 6, 7, 9, 10});  // 1, 2 and 4 blocks are live
  const auto move = ChooseMove(pools, List{0, 4});
  ASSERT_EQ(move, MoveOf(0, 1, {{4, 9}}));
  pools.Move(*move);
  EXPECT_EQ(pools.free_parents(), 1);
  EXPECT_EQ(pools.used_blocks(PoolId(0)), 7);
  EXPECT_EQ(ChooseMove(pools, List{0, 4}), std::nullopt) << "it fits now";
  const auto blocks = pools.Allocate(List{1, 4});
  KVASIR_ASSERT_OK(blocks);
  EXPECT_EQ((*blocks)[0], Blocks({10}));  // all that is left of parent 2
  EXPECT_EQ((*blocks)[1], Blocks({4, 5, 6, 7}));
  EXPECT_EQ(pools.TakeParentsToZero(), std::vector<ParentId>{ParentId(1)});
}

TEST(CompactionTest, OfEquallyUsedParentsTheHighestGoes) {
  EXPECT_EQ(ChooseMove(FullPools({6, 7, 9, 10}), List{0, 1}), MoveOf(0, 2, {{8, 6}, {11, 7}}));
}

TEST(CompactionTest, APinnedParentStays) {
  const BlockPools pools = FullPools({5, 6, 7, 9, 10});
  const std::vector<ParentId> one = {ParentId(1)};
  EXPECT_EQ(ChooseMove(pools, List{0, 4}, one), MoveOf(0, 2, {{8, 5}, {11, 6}}));
  const std::vector<ParentId> two = {ParentId(1), ParentId(2)};
  EXPECT_EQ(ChooseMove(pools, List{0, 4}, two), MoveOf(0, 3, {{12, 5}, {13, 6}, {14, 7}, {15, 9}}));
  const std::vector<ParentId> all = {ParentId(3), ParentId(2), ParentId(1)};
  EXPECT_EQ(ChooseMove(pools, List{0, 4}, all), std::nullopt);
}

// Pool b has the emptiest parent, and nowhere to put its block.
TEST(CompactionTest, AParentWhoseBlocksHaveNoRoomElsewhereStays) {
  EXPECT_EQ(ChooseMove(FullPools({6, 7, 9, 10}, /*b_blocks=*/1), List{0, 4}),
            MoveOf(0, 2, {{8, 6}, {11, 7}}));
  EXPECT_EQ(ChooseMove(FullPools({6, 7, 9}, /*b_blocks=*/1), List{0, 4}), std::nullopt);
}

TEST(CompactionTest, TheShareOfLiveBlocksDecidesAndNotTheirNumber) {
  BlockPools pools(MakePoolPlan(
      {PoolSketch{.name = "a", .blocks_per_parent = 2}, PoolSketch{.name = "b", .blocks_per_parent = 8}},
      /*parents=*/5, /*max_requests=*/4, /*context_tokens=*/64));
  KVASIR_ASSERT_OK(pools.Allocate(List{4, 16}));  // parents 1 and 2, then 3 and 4
  pools.Free(PoolId(0), Blocks({3, 4}));          // one of two blocks is live in each
  pools.Free(PoolId(1), Blocks({24, 25, 26, 27, 28, 32, 33, 34}));
  EXPECT_EQ(ChooseMove(pools, List{3, 0}), MoveOf(1, 3, {{29, 32}, {30, 33}, {31, 34}}));
}

TEST(CompactionTest, ListsOfBlocksFollow) {
  std::vector<BlockId> blocks = Blocks({0, 11, 4, 8});
  Rename(MoveOf(0, 2, {{8, 6}, {11, 7}}), blocks);
  EXPECT_EQ(blocks, Blocks({0, 7, 4, 6}));
}

// Sequences come and go over tables of every lifetime. Each table is followed by what its columns hold, and a
// move copies that.
class CompactedTables {
 public:
  explicit CompactedTables(const Plan& plan) : plan_(plan), tables_(*SequenceTables::Create(plan)) {}

  // Moves parents until the sequence is admitted, or nothing is left to move.
  void Join(std::int64_t limit) {
    absl::StatusOr<SequenceTable> table = tables_.Reserve(limit);
    while (!table.ok()) {
      std::vector<SequenceTable*> running;
      running.reserve(live_.size());
      for (auto& [id, live] : live_) running.push_back(&live.table);
      const std::optional<ParentMove> move = tables_.Compact(limit, running);
      if (!move.has_value()) return ExpectPacked();
      ++moves_;
      for (const ParentMove::Block& block : move->blocks) {
        const auto from = contents_.find({move->pool.value(), block.from.value()});
        if (from == contents_.end()) continue;  // of a window, not written yet
        contents_[{move->pool.value(), block.to.value()}] = from->second;
        contents_.erase(from);
      }
      table = tables_.Reserve(limit);
    }
    live_[next_++] = {.table = *std::move(table)};
  }

  // Every live sequence goes on by `rows` tokens; those at their end leave.
  void Advance(std::int64_t rows) {
    for (auto at = live_.begin(); at != live_.end();) {
      auto& [table, committed] = at->second;
      const std::int64_t step = std::min(rows, table.limit - committed);
      const std::vector<std::vector<BlockId>> before = table.columns;
      tables_.Place(table, committed, step);
      for (std::size_t p = 0; p < table.columns.size(); ++p) {
        for (std::size_t c = 0; c < table.columns[p].size(); ++c) {
          const BlockId block = table.columns[p][c];
          if (block.value() == 0) continue;
          auto& content = contents_[{static_cast<std::int32_t>(p), block.value()}];
          const Content own = {at->first, c};
          if (committed > 0 && before[p][c].value() != 0) {
            EXPECT_EQ(content, own) << "pool " << p << " block " << block.value();
          }
          content = own;
        }
      }
      committed += step;
      tables_.Settle(table, committed);
      if (committed < table.limit) {
        ++at;
        continue;
      }
      tables_.Release(table);
      at = live_.erase(at);
    }
  }

  [[nodiscard]] std::int64_t moves() const { return moves_; }
  [[nodiscard]] std::int64_t full() const { return full_; }
  [[nodiscard]] std::size_t running() const { return live_.size(); }

 private:
  using Content = std::pair<std::int64_t, std::size_t>;  // sequence and column
  struct Live {
    SequenceTable table;
    std::int64_t committed = 0;
  };

  // Each pool stands in as few parents as its blocks fill.
  void ExpectPacked() {
    std::int64_t parents = plan_.parents - 1;
    for (const PlanPool& pool : plan_.pools) {
      parents -= CeilDiv(tables_.used_blocks(pool.id), pool.blocks_per_parent);
    }
    EXPECT_EQ(tables_.free_parents(), parents);
    ++full_;
  }

  const Plan& plan_;
  SequenceTables tables_;
  std::map<std::int64_t, Live> live_;
  std::map<std::pair<std::int32_t, std::int64_t>, Content> contents_;
  std::int64_t next_ = 0;
  std::int64_t moves_ = 0;
  std::int64_t full_ = 0;
};

TEST(CompactionTest, SequencesKeepWhatTheyHoldAndPoolsStandInTheFewestParents) {
  const Plan plan = MakePoolPlan({PoolSketch{.name = "tokens", .blocks_per_parent = 6},
                                  PoolSketch{.name = "window",
                                             .lifetime = {.kind = LifetimeKind::kBoundedWindow, .window = 6},
                                             .block_tokens = 2,
                                             .blocks_per_parent = 8},
                                  PoolSketch{.name = "state",
                                             .lifetime = {.kind = LifetimeKind::kPerSequence, .copies = 1},
                                             .parts = 3,
                                             .blocks_per_parent = 2}},
                                 /*parents=*/30, /*max_requests=*/64, /*context_tokens=*/64);
  CompactedTables tables(plan);
  testing::SeededRandom random(1);
  for (int round = 0; round < 10000; ++round) {
    tables.Join(1 + random.Below(round / 200 % 2 == 0 ? 10 : 64));
    if (random.Below(2) == 0) tables.Advance(1 + random.Below(8));
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(tables.moves(), 300);
  EXPECT_GT(tables.full(), 300);
  while (tables.running() > 0) tables.Advance(8);
}

}  // namespace
}  // namespace kvasir
