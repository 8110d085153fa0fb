#include "worker/engine/check_metadata.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "worker/engine/random_draw.h"

namespace kvasir {
namespace {

using testing::kSmallVocab;
using testing::MakeEnginePlan;
using testing::StatusIs;

Plan ThePlan() { return MakeEnginePlan({.parents = 20}); }

// A verify of one sequence at T = 9 with 4 rows, padded to 2 requests.
PassMetadata GoodMetadata(const Plan& plan) {
  StepSequence sequence{.id = SequenceId(1), .committed = 9, .limit = 20, .tokens = {7}};
  sequence.blocks = {{BlockId(3), BlockId(4), BlockId(5), BlockId(6), BlockId(7)}};
  return MetadataBuilder(plan, RankPlace{})
      .Build({.pass = Pass::kTargetVerify, .requests = 2, .query_rows = 4},
             {RowsOfVerify(sequence, std::vector<std::int32_t>{1, 2, 3})});
}

struct Case {
  const char* name;
  std::function<void(PassMetadata&)> spoil;
  const char* message;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class SpoiltMetadataTest : public ::testing::TestWithParam<Case> {};

TEST_P(SpoiltMetadataTest, NamesPassGroupAndEntry) {
  const Plan plan = ThePlan();
  PassMetadata metadata = GoodMetadata(plan);
  KVASIR_ASSERT_OK(CheckMetadata(plan, kSmallVocab, metadata));
  GetParam().spoil(metadata);
  EXPECT_THAT(CheckMetadata(plan, kSmallVocab, metadata),
              StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    , SpoiltMetadataTest,
    ::testing::Values(
        Case{"slot_null_parent", [](PassMetadata& m) { m.groups[0].slots[1] = 11; },
             "target_verify, group target.mla: slots[1] is 11, want -1 or a slot of block 3 .. 59"},
        Case{"slot_past_arena", [](PassMetadata& m) { m.groups[0].slots[5] = 240; }, "slots[5] is 240"},
        Case{"slot_negative", [](PassMetadata& m) { m.groups[0].slots[0] = -2; }, "slots[0] is -2"},
        Case{"bound_negative", [](PassMetadata& m) { m.groups[0].bounds[2] = -1; },
             "bounds[2] is -1, want 0 .. 96"},
        Case{"bound_past_table", [](PassMetadata& m) { m.groups[0].bounds[2] = 97; }, "bounds[2] is 97"},
        Case{"bound_over_null_column", [](PassMetadata& m) { m.groups[0].bounds[3] = 17; },
             "block_table[4] is 0"},
        Case{"bound_of_padded_request", [](PassMetadata& m) { m.groups[0].bounds[4] = 1; },
             "block_table[24] is 0"},
        Case{"block_absurd", [](PassMetadata& m) { m.groups[0].block_table[2] = std::int64_t{1} << 40; },
             "block_table[2] is 1099511627776, want a block 3 .. 59"},
        Case{"token", [](PassMetadata& m) { m.token_ids[3] = kSmallVocab; },
             "token_ids[3] is 96, want 0 .. 95"},
        Case{"anchor", [](PassMetadata& m) { m.anchors[0] = -1; }, "anchors[0] is -1"},
        Case{"draws_in_a_target_pass", [](PassMetadata& m) { m.draws = {0.5}; },
             "target_verify: 0 temperatures and 1 draws, want 0 and 0"},
        Case{"position", [](PassMetadata& m) { m.positions[0] = 96; }, "positions[0] is 96, want 0 .. 95"},
        Case{"rows_missing", [](PassMetadata& m) { m.token_ids.pop_back(); }, "7 token ids"},
        Case{"slots_missing", [](PassMetadata& m) { m.groups[0].slots.pop_back(); }, "7 slots"},
        Case{"table_short", [](PassMetadata& m) { m.groups[0].block_table.pop_back(); }, "47 table entries"},
        Case{"group_unknown", [](PassMetadata& m) { m.groups[0].group = GroupId(7); },
             "group 7 is not in the plan"}),
    [](const auto& its) { return std::string(its.param.name); });

TEST(CheckMetadataTest, WhatNoRowLooksAtIsNotJudged) {
  const Plan plan = ThePlan();
  PassMetadata metadata = GoodMetadata(plan);
  metadata.groups[0].block_table[4] = std::int64_t{1} << 40;  // column 4 starts at token 16
  KVASIR_EXPECT_OK(CheckMetadata(plan, kSmallVocab, metadata));
}

TEST(CheckDrawsTest, ADraftBlockHasATemperatureForEachRequestAndADrawForEachRow) {
  const Plan plan = ThePlan();
  StepSequence sequence{.id = SequenceId(1), .committed = 9, .limit = 20, .tokens = {7}};
  sequence.blocks = {{BlockId(3), BlockId(4), BlockId(5), BlockId(6), BlockId(7)}};
  sequence.sampling = {.temperature = 0.7, .seed = 3};
  const PassMetadata good = MetadataBuilder(plan, RankPlace{})
                                .Build({.pass = Pass::kDraftBlock, .requests = 2, .query_rows = 3},
                                       {RowsOfDraftBlock(plan, sequence, kSmallVocab - 1)});
  KVASIR_ASSERT_OK(CheckMetadata(plan, kSmallVocab, good));
  EXPECT_EQ(good.temperatures, (std::vector<double>{0.7, 0}));
  ASSERT_EQ(good.draws.size(), 6U);
  EXPECT_EQ(good.draws[1], UniformDraw({3, 9, DrawPurpose::kDraft, 1}));
  EXPECT_EQ(good.draws[3], 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::function<void(PassMetadata&)>& spoil : std::vector<std::function<void(PassMetadata&)>>{
           [](PassMetadata& m) { m.draws.pop_back(); }, [](PassMetadata& m) { m.temperatures.clear(); },
           [](PassMetadata& m) { m.temperatures[0] = -1; }, [&](PassMetadata& m) { m.temperatures[1] = nan; },
           [](PassMetadata& m) { m.draws[5] = 1; }, [&](PassMetadata& m) { m.draws[0] = nan; }}) {
    PassMetadata bad = good;
    spoil(bad);
    EXPECT_THAT(CheckMetadata(plan, kSmallVocab, bad),
                StatusIs(absl::StatusCode::kInvalidArgument, "draft_block: "));
  }
}

}  // namespace
}  // namespace kvasir
