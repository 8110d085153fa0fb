#include "worker/engine/step_metadata.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/geometry/context_shard.h"
#include "tests/testing/engine_plan.h"
#include "worker/engine/check_metadata.h"

namespace kvasir {
namespace {

using testing::EnginePlanOptions;
using testing::MakeEnginePlan;

constexpr std::int64_t kAbsurd = std::int64_t{1} << 40;
constexpr std::int32_t kMask = 90;

// A sequence whose blocks are 30, 31, ... in a plan with one pool; `table` is at least one block long.
StepSequence SequenceOf(const Plan& plan, std::int64_t committed, std::int64_t limit,
                        std::int64_t first_block) {
  StepSequence sequence{.id = SequenceId(first_block), .committed = committed, .limit = limit};
  sequence.tokens = {7};
  sequence.blocks.resize(plan.pools.size());
  for (std::int64_t i = 0; i < 24; ++i) sequence.blocks[0].emplace_back(first_block + i);
  return sequence;
}

struct Case {
  Topology topology;
  std::int64_t committed = 0;
  std::int64_t valid = 1;
  bool causal = true;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << absl::StrFormat("dcp%d_i%d_T%d_q%d_%s", c.topology.dcp, c.topology.interleave, c.committed, c.valid,
                          c.causal ? "causal" : "block");
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Topology& topology :
       {Topology{4, 1, 1}, Topology{4, 2, 1}, Topology{4, 4, 1}, Topology{4, 2, 4}}) {
    for (const std::int64_t committed : {0, 1, 3, 7, 8, 9, 15, 16, 17}) {
      for (const std::int64_t valid : {1, 2, 4}) {
        for (const bool causal : {true, false}) cases.push_back({topology, committed, valid, causal});
      }
    }
  }
  return cases;
}

// Against a count of what each rank holds, position by position.
void ExpectBruteForce(const Case& c) {
  const Plan plan = MakeEnginePlan({.topology = c.topology});
  const StepSequence sequence = SequenceOf(plan, c.committed, 96, 30);
  const Pass pass = c.causal ? Pass::kTargetVerify : Pass::kDraftBlock;
  SequenceRows rows{.sequence = &sequence, .start = c.committed};
  rows.tokens.assign(static_cast<std::size_t>(c.valid), 5);
  std::vector<int> writers(static_cast<std::size_t>(c.valid), 0);
  for (std::int64_t rank = 0; rank < c.topology.tp; ++rank) {
    const RankPlace place{.rank = rank, .topology = c.topology};
    const ContextShard shard{
        .ranks = c.topology.dcp, .interleave = c.topology.interleave, .rank = place.dcp_rank()};
    const PassMetadata metadata =
        MetadataBuilder(plan, place, kAbsurd).Build({.pass = pass, .requests = 2, .query_rows = 4}, {rows});
    EXPECT_TRUE(CheckMetadata(plan, 96, metadata).ok());
    ASSERT_EQ(metadata.groups.size(), 1U);
    const GroupMetadata& group = metadata.groups[0];
    EXPECT_EQ(group.behaviour.causal, c.causal);
    std::int64_t seen = 0;
    for (std::int64_t i = 0; i < c.valid; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const std::int64_t visible = c.causal ? c.committed + i + 1 : c.committed + c.valid;
      std::int64_t mine = 0;
      for (std::int64_t p = 0; p < visible; ++p) mine += OwnerOf(shard, p) == shard.rank ? 1 : 0;
      EXPECT_EQ(group.bounds[row], mine) << "rank " << rank << " row " << i;
      seen = std::max(seen, mine);
      const std::int64_t position = c.committed + i;
      EXPECT_EQ(metadata.positions[row], position);
      if (OwnerOf(shard, position) != shard.rank) {
        EXPECT_EQ(group.slots[row], -1);
        continue;
      }
      ++writers[row];
      std::int64_t before = 0;
      for (std::int64_t p = 0; p < position; ++p) before += OwnerOf(shard, p) == shard.rank ? 1 : 0;
      EXPECT_EQ(group.slots[row], (30 + before / 4) * 4 + before % 4);
    }
    // Columns that some row looks at, and absurd ids beyond.
    for (std::int64_t column = 0; column < group.table_width; ++column) {
      const bool used = column * 4 < seen;
      EXPECT_EQ(group.block_table[static_cast<std::size_t>(column)], used ? 30 + column : kAbsurd);
    }
  }
  for (const int count : writers) EXPECT_EQ(count, c.topology.tp / c.topology.dcp);  // once per DCP group
}

TEST(StepMetadataTest, BoundsAndSlotsAreThoseOfBruteForce) {
  for (const Case& c : AllCases()) {
    SCOPED_TRACE(::testing::PrintToString(c));
    ASSERT_NO_FATAL_FAILURE(ExpectBruteForce(c));
  }
}

TEST(StepMetadataTest, EveryPaddedEntryIsRewritten) {
  const Plan plan = MakeEnginePlan({});
  const StepSequence sequence = SequenceOf(plan, 9, 96, 30);
  const PassMetadata metadata = MetadataBuilder(plan, RankPlace{}, kAbsurd)
                                    .Build({.pass = Pass::kTargetVerify, .requests = 4, .query_rows = 4},
                                           {RowsOfVerify(sequence, std::vector<std::int32_t>{8})});
  const GroupMetadata& group = metadata.groups[0];
  EXPECT_EQ(metadata.token_ids[0], 7);
  EXPECT_EQ(metadata.token_ids[1], 8);
  for (std::size_t row = 2; row < 16; ++row) {
    EXPECT_EQ(metadata.token_ids[row], 0);
    EXPECT_EQ(metadata.positions[row], 0);
    EXPECT_EQ(group.slots[row], -1);
    EXPECT_EQ(group.bounds[row], 0);
  }
  const auto width = static_cast<std::size_t>(group.table_width);
  for (std::size_t entry = width; entry < 4 * width; ++entry) EXPECT_EQ(group.block_table[entry], 0);
}

TEST(StepMetadataTest, TwoGroupsOfOnePoolKeepTheirOwnCausality) {
  for (const bool draft_first : {false, true}) {
    const Plan plan = MakeEnginePlan({.draft_first = draft_first});
    const StepSequence sequence = SequenceOf(plan, 9, 96, 30);
    const MetadataBuilder builder(plan, RankPlace{});
    const PassMetadata verify = builder.Build({.pass = Pass::kTargetVerify, .requests = 1, .query_rows = 4},
                                              {RowsOfVerify(sequence, std::vector<std::int32_t>{1, 2, 3})});
    const PassMetadata block = builder.Build({.pass = Pass::kDraftBlock, .requests = 1, .query_rows = 3},
                                             {RowsOfDraftBlock(plan, sequence, kMask)});
    ASSERT_EQ(verify.groups.size(), 1U);
    ASSERT_EQ(block.groups.size(), 1U);
    EXPECT_NE(verify.groups[0].group, block.groups[0].group);
    EXPECT_EQ(verify.groups[0].bounds, (std::vector<std::int64_t>{10, 11, 12, 13}));
    EXPECT_EQ(block.groups[0].bounds, (std::vector<std::int64_t>{12, 12, 12}));
  }
}

TEST(StepMetadataTest, ADraftedBlockIsTheAnchorAndMasks) {
  const Plan plan = MakeEnginePlan({});
  const SequenceRows rows = RowsOfDraftBlock(plan, SequenceOf(plan, 9, 96, 30), kMask);
  EXPECT_EQ(rows.tokens, (std::vector<std::int32_t>{7, kMask, kMask}));
  EXPECT_EQ(rows.anchor, 7);
  EXPECT_EQ(rows.start, 9);
}

// DFlash: the anchor's row predicts nothing, so a block of three tokens has four rows.
TEST(StepMetadataTest, ABlockWhoseAnchorPredictsNothingHasARowMore) {
  const Plan plan = MakeEnginePlan({.dflash = true});
  EXPECT_EQ(DraftBlockRows(plan), 4);
  StepSequence sequence = SequenceOf(plan, 9, 96, 30);
  sequence.sampling = {.temperature = 1, .seed = 5};
  const SequenceRows rows = RowsOfDraftBlock(plan, sequence, kMask);
  EXPECT_EQ(rows.tokens, (std::vector<std::int32_t>{7, kMask, kMask, kMask}));
  const SequenceRows other = RowsOfDraftBlock(MakeEnginePlan({}), sequence, kMask);
  ASSERT_EQ(rows.draws.size(), 4U);
  EXPECT_EQ(std::vector<double>(rows.draws.begin() + 1, rows.draws.end()), other.draws);
  sequence.limit = 11;
  EXPECT_EQ(RowsOfDraftBlock(plan, sequence, kMask).tokens, (std::vector<std::int32_t>{7, kMask}));
  sequence.limit = 10;
  EXPECT_TRUE(RowsOfDraftBlock(plan, sequence, kMask).tokens.empty());
}

// A chain draft keeps a token's row at the position before, and joins it with the state that was left there:
// carried in the sequence's seat, or behind the seats in the rows of the target's last pass.
TEST(StepMetadataTest, AChainsRowsStandOnePositionEarlier) {
  const Plan plan = MakeEnginePlan({.mtp = true});  // 4 seats, blocks of 4 tokens
  const MetadataBuilder builder(plan, RankPlace{}, /*unused_entry=*/0, /*chain=*/true);
  StepSequence sequence = SequenceOf(plan, 9, 96, 30);
  sequence.seat = 2;
  StepSequence first = SequenceOf(plan, 0, 96, 40);
  const PassMetadata context = builder.Build({.pass = Pass::kDraftContext, .requests = 2, .query_rows = 4},
                                             {RowsOfChainContext(sequence, std::vector<std::int32_t>{7, 5}),
                                              RowsOfChainContext(first, std::vector<std::int32_t>{1, 2, 3})});
  EXPECT_EQ(context.token_ids, (std::vector<std::int32_t>{7, 5, 0, 0, 1, 2, 3, 0}));
  EXPECT_EQ(context.positions, (std::vector<std::int64_t>{8, 9, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(context.previous, (std::vector<std::int32_t>{2, 4, 2, 2, 0, 8, 9, 2}));
  EXPECT_EQ(context.carried, (std::vector<std::int64_t>{-1, 2, -1, -1, -1, -1, 0, -1}));
  // A sequence's first token has no state before it, and no row.
  EXPECT_EQ(context.groups[0].slots,
            (std::vector<std::int64_t>{32 * 4, 32 * 4 + 1, -1, -1, -1, 40 * 4, 40 * 4 + 1, -1}));
  EXPECT_EQ(context.groups[0].bounds, std::vector<std::int64_t>(8, 0));
  const auto accepted = [&plan](const PassMetadata& metadata, bool chain = true) {
    return CheckMetadata(plan, testing::kSmallVocab, metadata, chain).ok();
  };
  EXPECT_TRUE(accepted(context));
  EXPECT_FALSE(accepted(context, /*chain=*/false));

  const PassMetadata block = builder.Build({.pass = Pass::kDraftBlock, .requests = 2, .query_rows = 3},
                                           {RowsOfChainBlock(plan, sequence)});
  EXPECT_EQ(block.positions, (std::vector<std::int64_t>{8, 9, 10, 0, 0, 0}));
  EXPECT_EQ(block.previous, (std::vector<std::int32_t>{2, 2}));
  EXPECT_EQ(block.groups[0].bounds, (std::vector<std::int64_t>{9, 10, 11, 0, 0, 0}));
  EXPECT_TRUE(block.carried.empty());
  EXPECT_TRUE(accepted(block));
  PassMetadata beyond = block;
  beyond.previous[1] = 4;
  EXPECT_FALSE(accepted(beyond));
  beyond = context;
  beyond.carried[0] = 4;
  EXPECT_FALSE(accepted(beyond));
  beyond = context;
  beyond.previous.clear();
  beyond.carried.clear();
  EXPECT_FALSE(accepted(beyond));
  beyond = context;
  beyond.previous.pop_back();
  EXPECT_FALSE(accepted(beyond));

  const PassMetadata verify = builder.Build({.pass = Pass::kTargetVerify, .requests = 1, .query_rows = 4},
                                            {RowsOfVerify(sequence, std::vector<std::int32_t>{1, 2, 3})});
  EXPECT_TRUE(verify.previous.empty() && verify.carried.empty());
}

TEST(StepMetadataTest, RowsAtOrPastTheLimitArePadding) {
  const Plan plan = MakeEnginePlan({});
  struct Limit {
    std::int64_t limit, drafted;
  };
  for (const Limit& c : {Limit{10, 0}, Limit{11, 1}, Limit{12, 2}, Limit{13, 3}, Limit{14, 3}}) {
    const StepSequence sequence = SequenceOf(plan, 9, c.limit, 30);
    EXPECT_EQ(DraftedTokens(sequence, 3), c.drafted) << c.limit;
    const SequenceRows block = RowsOfDraftBlock(plan, sequence, kMask);
    EXPECT_EQ(static_cast<std::int64_t>(block.tokens.size()), c.drafted);
    EXPECT_EQ(block.anchor, 7);
    const std::vector<std::int32_t> drafted(static_cast<std::size_t>(c.drafted), 1);
    const SequenceRows verify = RowsOfVerify(sequence, drafted);
    EXPECT_LE(verify.start + static_cast<std::int64_t>(verify.tokens.size()), c.limit);
  }
}

TEST(StepMetadataTest, RejectedRowsOfTheContextPassWriteNothing) {
  const Plan plan = MakeEnginePlan({});
  const StepSequence sequence = SequenceOf(plan, 9, 96, 30);
  const PassMetadata metadata = MetadataBuilder(plan, RankPlace{})
                                    .Build({.pass = Pass::kDraftContext, .requests = 1, .query_rows = 4},
                                           {RowsOfContext(sequence, /*accepted=*/1)});
  const GroupMetadata& group = metadata.groups[0];
  EXPECT_EQ(group.slots, (std::vector<std::int64_t>{32 * 4 + 1, 32 * 4 + 2, -1, -1}));
  EXPECT_EQ(group.bounds, (std::vector<std::int64_t>{0, 0, 0, 0}));  // it attends to nothing
  EXPECT_EQ(metadata.positions, (std::vector<std::int64_t>{9, 10, 0, 0}));
}

}  // namespace
}  // namespace kvasir
