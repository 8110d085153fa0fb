// Which layers form a group, and with what page: unification, equal pages, packing, shared slots, promotion.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "planner/rulesets/vllm/layer_tuples.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "planner/rulesets/vllm/stage_layers.h"
#include "tests/testing/engine_cases.h"

namespace kvasir::vllm {
namespace {

using testing::CaseBuilder;
using testing::ChunkedSpec;
using testing::FullSpec;
using testing::GroupSizes;
using testing::HiddenSpec;
using testing::kGib;
using testing::MambaSpec;
using testing::MlaSpec;
using testing::SlidingMlaSpec;
using testing::SlidingSpec;
using testing::SpecOfGroup;

constexpr auto kA = EngineVersion::k2026_08;
constexpr auto kB = EngineVersion::k2026_11;

EngineSpec With(EngineSpec spec, const std::function<void(EngineSpec&)>& change) {
  change(spec);
  return spec;
}

std::string FailureOf(const EnginePlan& plan) {
  if (!plan.failure.has_value()) return "planned";
  return std::string(EngineErrorKindName(plan.failure->kind));
}

// Numbers of full and sliding layers that alternate nowhere: the split depends on the numbers only.
struct SizeCase {
  int full;
  int sliding;
  std::vector<std::size_t> groups;
  std::string log;
};

void PrintTo(const SizeCase& c, std::ostream* out) { *out << c.full << "_full_" << c.sliding << "_sliding"; }

class EqualPages : public ::testing::TestWithParam<SizeCase> {};

TEST_P(EqualPages, SplitByTheSmallerUnlessAlmostEqual) {
  for (const EngineVersion version : testing::kBothVersions) {
    CaseBuilder builder;
    builder.Layers("f", FullSpec(), GetParam().full).Layers("s", SlidingSpec(), GetParam().sliding);
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    EXPECT_EQ(GroupSizes(plan), GetParam().groups);
    EXPECT_EQ(plan.log.empty() ? "" : plan.log.front(), GetParam().log);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , EqualPages,
    ::testing::Values(
        SizeCase{4, 4, {4, 4}, ""}, SizeCase{10, 20, {10, 10, 10}, ""},
        // 19 < 1.5 * 18: the larger one is the size of a group.
        SizeCase{19, 18, {19, 18}, "Add 1 padding layers, may waste at most 5.56% KV cache memory"},
        SizeCase{20, 29, {20, 29}, "Add 9 padding layers, may waste at most 45.00% KV cache memory"},
        // 30 is not below 1.5 * 20.
        SizeCase{20, 30, {20, 15, 15}, "Add 10 padding layers, may waste at most 33.33% KV cache memory"},
        SizeCase{1, 5, {1, 1, 1, 1, 1, 1}, ""},
        SizeCase{9, 7, {9, 7}, "Add 2 padding layers, may waste at most 28.57% KV cache memory"}),
    [](const auto& param) {
      return std::to_string(param.param.full) + "_" + std::to_string(param.param.sliding);
    });

TEST(EqualPageGroups, TakeEveryKthLayerSoThatStagesStayBalanced) {
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 2).Layers("s", SlidingSpec(), 5);
  const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
  ASSERT_EQ(plan.groups.size(), 4U);
  EXPECT_EQ(plan.groups[1].layers, (std::vector<std::int32_t>{2, 5}));
  EXPECT_EQ(plan.groups[2].layers, (std::vector<std::int32_t>{3, 6}));
  EXPECT_EQ(plan.groups[3].layers, (std::vector<std::int32_t>{4}));
}

TEST(EqualPageGroups, SpecsThatMergeShareABucketInOrderOfAppearance) {
  const EngineSpec non_causal = With(FullSpec(), [](EngineSpec& s) { s.non_causal = true; });
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 1).Layers("s", SlidingSpec(), 3).Layers("n", non_causal, 2);
  const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
  ASSERT_EQ(GroupSizes(plan), (std::vector<std::size_t>{3, 3}));
  EXPECT_EQ(plan.groups[0].layers, (std::vector<std::int32_t>{0, 4, 5}));
  EXPECT_TRUE(SpecOfGroup(plan, 0).non_causal);
}

struct UnifyCase {
  std::string name;
  std::vector<EngineSpec> specs;
  std::vector<std::int64_t> a;  // block sizes of the groups; empty: NotImplementedError
  std::vector<std::int64_t> b;
  std::int64_t page;
};

void PrintTo(const UnifyCase& c, std::ostream* out) { *out << c.name; }

class UnequalPages : public ::testing::TestWithParam<UnifyCase> {};

TEST_P(UnequalPages, AreRaisedToTheLargest) {
  for (const EngineVersion version : testing::kBothVersions) {
    CaseBuilder builder;
    for (const EngineSpec& spec : GetParam().specs) builder.Layers("l", spec, 2);
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    const std::vector<std::int64_t>& blocks = version == kA ? GetParam().a : GetParam().b;
    if (blocks.empty()) {
      EXPECT_EQ(FailureOf(plan), "NotImplementedError");
      EXPECT_NE(plan.failure->message.find("layer l."), std::string::npos) << plan.failure->message;
      continue;
    }
    ASSERT_EQ(plan.groups.size(), blocks.size());
    for (std::size_t g = 0; g < blocks.size(); ++g) {
      EXPECT_EQ(SpecOfGroup(plan, g).block_size, blocks[g]);
      EXPECT_EQ(*PageBytes(SpecOfGroup(plan, g)), GetParam().page);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , UnequalPages,
    ::testing::Values(
        UnifyCase{"divides", {FullSpec(8), SlidingSpec(1024, 4)}, {16, 32}, {16, 32}, 65536},
        UnifyCase{"does_not_divide", {FullSpec(8), SlidingSpec(1024, 3)}, {}, {16, 16}, 65536},
        UnifyCase{"stride_backend",
                  {FullSpec(8),
                   With(SlidingSpec(1024, 3), [](EngineSpec& s) { s.indexes_kv_by_block_stride = true; })},
                  {16, 16},
                  {16, 16},
                  65536},
        UnifyCase{"mamba_is_padded", {FullSpec(8), MambaSpec(10000)}, {16, 1 << 17}, {16, 1 << 17}, 65536},
        UnifyCase{
            "mamba_is_the_largest", {FullSpec(8), MambaSpec(32768)}, {32, 1 << 17}, {32, 1 << 17}, 131072},
        // 36,864 divides neither way into 65,536; a latent page must not be padded.
        UnifyCase{"latent",
                  {With(FullSpec(8), [](EngineSpec& s) { s.kind = SpecKind::kCross; }), MlaSpec(288)},
                  {},
                  {},
                  65536}),
    [](const auto& param) { return param.param.name; });

TEST(UnequalPageTraps, APaddedSmallerPageNeverFits) {
  CaseBuilder builder;
  builder.Layers("f", FullSpec(8), 2)
      .Layers("s", With(SlidingSpec(1024, 3), [](EngineSpec& s) { s.page_size_padded = 32768; }), 2);
  EXPECT_EQ(FailureOf(PlanEngine(builder.engine_case(), kB)), "AssertionError")
      << "the padding is not scaled";
}

TEST(UnequalPageTraps, ABlockWithoutAStateDividesByZero) {
  CaseBuilder builder;
  const EngineSpec empty =
      With(MlaSpec(), [](EngineSpec& s) { s.tokens_per_state = {128, 1}; });  // 64 / 128 states
  builder.Layers("m", empty, 2).Layers("k", MambaSpec(), 2);
  EXPECT_EQ(FailureOf(PlanEngine(builder.engine_case(), kA)), "ZeroDivisionError");
}

TEST(FullAllocation, TakesASlidingDraftOfUnequalPagesIntoTheLatentGroup) {
  // 18,432-byte latent and 4,096-byte sliding pages: neither divides, so the window is given up.
  const EngineSpec draft = With(SlidingSpec(2048, 1, 64), [](EngineSpec& s) { s.block_size = 16; });
  const EngineSpec latent = With(MlaSpec(), [](EngineSpec& s) { s.block_size = 16; });
  CaseBuilder builder;
  builder.Layers("m", latent, 6).Layers("d", draft, 2);
  const EnginePlan plan = PlanEngine(builder.engine_case(), kA);
  ASSERT_EQ(FailureOf(plan), "planned");
  ASSERT_EQ(GroupSizes(plan), (std::vector<std::size_t>{8}));
  ASSERT_TRUE(std::holds_alternative<UniformTypeSpecs>(plan.groups[0].spec));
  const auto& members = std::get<UniformTypeSpecs>(plan.groups[0].spec).members;
  const EngineSpec& promoted = plan.specs[static_cast<std::size_t>(members.back().spec)];
  EXPECT_EQ(promoted.kind, SpecKind::kFull);
  EXPECT_EQ(promoted.sliding_window, 2048);
}

TEST(Hidden, GetAGroupEachWithAPagePaddedToTheCommonOne) {
  // A hidden state of 3 * 2048 * 2 = 12,288 bytes: five fit into 64 KiB, and 4 is the largest divisor of 16.
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 4).Layers("s", SlidingSpec(), 4).Layers("h", HiddenSpec(3), 2);
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_EQ(GroupSizes(plan), (std::vector<std::size_t>{4, 4, 1, 1}));
    EXPECT_EQ(SpecOfGroup(plan, 3).block_size, 4);
    EXPECT_EQ(SpecOfGroup(plan, 3).page_size_padded, 65536);
  }
}

TEST(Hidden, ATokenBeyondThePageScalesBlocksSince202611) {
  // 5 * 4096 * 2 = 40,960 bytes beside pages of 8,192: five times the block.
  CaseBuilder builder;
  builder.Layers("f", FullSpec(1), 4)
      .Layers("s", SlidingSpec(1024, 1), 4)
      .Layers("h", HiddenSpec(5, 4096), 1);
  const EnginePlan a = PlanEngine(builder.engine_case(), kA);
  EXPECT_EQ(FailureOf(a), "AssertionError");
  EXPECT_TRUE(a.grouped) << "what was computed before is kept";
  const EnginePlan b = PlanEngine(builder.engine_case(), kB);
  ASSERT_EQ(FailureOf(b), "planned");
  EXPECT_EQ(SpecOfGroup(b, 0).block_size, 80);
  EXPECT_EQ(SpecOfGroup(b, 2).block_size, 1);
  EXPECT_EQ(*PageBytes(SpecOfGroup(b, 2)), 40960);
}

TEST(LeastPadding, TriesEverySizeFromTheLowerBound) {
  EXPECT_EQ(LeastPaddingSize({11, 21, 10, 20}, 11), 11);  // 0 + 1 + 1 + 2
  EXPECT_EQ(LeastPaddingSize({22, 43, 21, 42, 20}, 22), 22);
  EXPECT_EQ(LeastPaddingSize({4, 4}, 1), 4) << "the larger wins a tie";
  EXPECT_EQ(LeastPaddingSize({3, 2}, 9), 9) << "above all counts";
}

// 2 page sizes of mla and three sliding latent layers.
CaseBuilder Packable() {
  CaseBuilder builder(16384);
  builder.Layers("m", MlaSpec(576), 2).Layers("i", MlaSpec(288), 2).Layers("s", SlidingMlaSpec(), 3);
  builder.config().kv_cache_layout = KvLayout::kBLHNC;
  return builder;
}

TEST(Packed, KeepsLatentLayersTogetherAndCutsSlidingOnes) {
  CaseBuilder builder = Packable();
  const EnginePlan a = PlanEngine(builder.engine_case(), kA);
  EXPECT_EQ(GroupSizes(a),
            (std::vector<std::size_t>{4, 3}));  // sizes 2: 1 padded, 3: 1 padded; the larger wins
  const EnginePlan b = PlanEngine(builder.engine_case(), kB);
  EXPECT_EQ(GroupSizes(b), (std::vector<std::size_t>{4, 3}));
  for (const EnginePlan* plan : {&a, &b}) {
    for (const EngineGroup& group : plan->groups)
      EXPECT_TRUE(std::holds_alternative<UniformTypeSpecs>(group.spec));
  }
}

TEST(Packed, NeedsABlockOutermostLayoutSince202611) {
  CaseBuilder builder = Packable();
  builder.config().kv_cache_layout = KvLayout::kLBNHC;
  EXPECT_EQ(GroupSizes(PlanEngine(builder.engine_case(), kA)), (std::vector<std::size_t>{4, 3}));
  // Without packing the pages unify: 36,864 becomes 73,728 with blocks of 128 tokens.
  EXPECT_EQ(SpecOfGroup(PlanEngine(builder.engine_case(), kB), 1).block_size, 128);
}

TEST(Packed, DropsOtherLayersIn202608) {
  CaseBuilder builder = Packable();
  builder.Layers("f", FullSpec(), 1);
  const EnginePlan plan = PlanEngine(builder.engine_case(), kA);
  EXPECT_EQ(FailureOf(plan), "AssertionError");
  EXPECT_EQ(plan.failure->message, "some layers are in no group");
}

TEST(Packed, AnUnbalancedSlidingBucketFailsEachInItsWay) {
  CaseBuilder builder(16384);
  const EngineSpec small = SlidingMlaSpec(128, 288);
  builder.Layers("m", MlaSpec(), 1).Layers("s", SlidingMlaSpec(), 2).Layers("t", small, 1);
  builder.config().kv_cache_layout = KvLayout::kBLHNC;
  EXPECT_EQ(FailureOf(PlanEngine(builder.engine_case(), kA)), "AssertionError");
  EXPECT_EQ(FailureOf(PlanEngine(builder.engine_case(), kB)), "StopIteration");
  EXPECT_EQ(GroupSizes(PlanEngineAsMeant(builder.engine_case(), kB)), (std::vector<std::size_t>{1, 3}));
}

TEST(Packed, StatesAreCutToTheBlockThatOthersNeed) {
  // Full pages of 64 KiB in 4 layers need 256 KiB; a state of 40,000 bytes fits six times, so 9 states make 2
  // groups.
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 4).Layers("k", MambaSpec(10000), 9);
  builder.config().kv_cache_layout = KvLayout::kBLNHC;
  EXPECT_EQ(GroupSizes(PlanEngine(builder.engine_case(), kB)), (std::vector<std::size_t>{4, 5, 4}));
}

// 8 latent layers, of which 4 compress four tokens, 6 mamba layers and the tails of the indexers.
CaseBuilder SlotModel(bool tails, std::int64_t state_elements = 16384) {
  CaseBuilder builder;
  const EngineSpec indexer = With(MlaSpec(132), [](EngineSpec& s) {
    s.dtype = ElementType::kUint8;
    s.tokens_per_state = {4, 1};
  });
  EngineSpec tail = SlidingSpec(8, 1, 64);
  tail.kind = SpecKind::kKpoolTail;
  tail.block_size = 8;
  tail.head_size_v = 0;
  builder.Layers("m", MlaSpec(), 4).Layers("i", indexer, 4);
  if (tails) builder.Layers("t", tail, 4);
  builder.Layers("k", MambaSpec(state_elements), 6);
  return builder;
}

TEST(SharedSlots, DealMambaLayersOverTheLatentOnes) {
  CaseBuilder builder = SlotModel(true);
  const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
  ASSERT_EQ(FailureOf(plan), "planned");
  EXPECT_EQ(GroupSizes(plan), (std::vector<std::size_t>{8, 4, 3, 3}));
  EXPECT_EQ(plan.groups[2].layers, (std::vector<std::int32_t>{12, 14, 16}));
  EXPECT_EQ(*PageBytes(SpecOfGroup(plan, 2)), 73728) << "padded to the latent page";
  EXPECT_EQ(*PageBytes(SpecOfGroup(plan, 1)), 2112) << "padded to the indexer's page";
  EXPECT_EQ(plan.per_worker[0].pool_bytes_per_block, 4 * 73728 + 4 * 2112);
}

TEST(SharedSlots, RefuseAStateLargerThanTheLatentPage) {
  CaseBuilder builder = SlotModel(false, 20000);
  EXPECT_EQ(FailureOf(PlanEngine(builder.engine_case(), kB)), "ValueError");
}

TEST(SharedSlots, RefuseAStageWithMambaAndNoLatentLayer) {
  CaseBuilder builder = SlotModel(false);
  builder.Stages({0, 8, 14}, {20 * kGib, 20 * kGib});
  const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
  EXPECT_EQ(FailureOf(plan), "ValueError");
  EXPECT_EQ(plan.failure->message,
            "pipeline stage 1 has mamba layers but no mla layer whose slots they could use; move the stage "
            "boundaries");
}

TEST(StageLayers, GiveTheRestToTheStagesBeforeTheLast) {
  const auto bounds = [](std::int64_t layers, std::int64_t stages) {
    std::vector<std::int64_t> ends;
    ends.reserve(static_cast<std::size_t>(stages));
    for (std::int64_t s = 0; s < stages; ++s) ends.push_back(LayersOfStage(layers, s, stages).end);
    return ends;
  };
  EXPECT_EQ(bounds(12, 3), (std::vector<std::int64_t>{4, 8, 12}));
  EXPECT_EQ(bounds(13, 3), (std::vector<std::int64_t>{4, 9, 13}));
  EXPECT_EQ(bounds(14, 3), (std::vector<std::int64_t>{5, 10, 14}));
}

TEST(StageLayers, ReadTheOneNumberOfAName) {
  EXPECT_EQ(*LayerIndexOfName("model.layers.17.self_attn.attn"), 17);
  EXPECT_FALSE(LayerIndexOfName("model.layers.attn").ok());
  EXPECT_FALSE(LayerIndexOfName("model.layers.1.experts.2").ok());
}

CaseBuilder HybridOff() {
  CaseBuilder builder;
  builder.config().disable_hybrid_kv_cache_manager = true;
  return builder;
}

TEST(Promotion, RecordsTheWindowOnAFullSpec) {
  CaseBuilder builder = HybridOff();
  builder.Layers("f", FullSpec(), 2).Layers("s", SlidingSpec(), 2);
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_EQ(GroupSizes(plan), (std::vector<std::size_t>{4}));
    EXPECT_EQ(SpecOfGroup(plan, 0).sliding_window, 1024);
    EXPECT_EQ(SpecOfGroup(plan, 0).kind, SpecKind::kFull);
  }
}

TEST(Promotion, TakesTheFullLayersBlock) {
  CaseBuilder builder = HybridOff();
  builder.Layers("f", With(FullSpec(), [](EngineSpec& s) { s.block_size = 64; }), 2)
      .Layers("s", SlidingSpec(), 2);
  EXPECT_EQ(SpecOfGroup(PlanEngine(builder.engine_case(), kA), 0).block_size, 64);
}

TEST(Promotion, FailsWhereCachesStayOfTwoTypes) {
  CaseBuilder mamba = HybridOff();
  mamba.Layers("f", FullSpec(), 2).Layers("k", MambaSpec(), 2);
  CaseBuilder windows = HybridOff();
  windows.Layers("f", FullSpec(), 1).Layers("s", SlidingSpec(512), 1).Layers("s", SlidingSpec(1024), 1);
  CaseBuilder chunks = HybridOff();
  chunks.Layers("f", FullSpec(), 1).Layers("c", ChunkedSpec(), 1);
  for (const EngineVersion version : testing::kBothVersions) {
    EXPECT_EQ(FailureOf(PlanEngine(mamba.engine_case(), version)), "ValueError");
    EXPECT_EQ(FailureOf(PlanEngine(windows.engine_case(), version)), "ValueError");
    EXPECT_EQ(FailureOf(PlanEngine(chunks.engine_case(), version)), "planned");
  }
}

TEST(Promotion, ASlidingLatentLayerIsATypeErrorIn202611) {
  CaseBuilder builder = HybridOff();
  builder.Layers("m", MlaSpec(), 2).Layers("s", SlidingMlaSpec(), 2);
  EXPECT_EQ(FailureOf(PlanEngine(builder.engine_case(), kA)), "planned");
  const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
  EXPECT_EQ(FailureOf(plan), "TypeError");
  ASSERT_FALSE(plan.warnings.empty());
  EXPECT_EQ(plan.warnings.back().about, "defect");
  const EnginePlan meant = PlanEngineAsMeant(builder.engine_case(), kB);
  EXPECT_EQ(FailureOf(meant), "planned");
  EXPECT_EQ(GroupSizes(meant), (std::vector<std::size_t>{4}));
}

TEST(Promotion, ReplicatedLayersAreJudgedApartSince202611) {
  CaseBuilder builder = HybridOff();
  const EngineSpec replicated = With(FullSpec(4), [](EngineSpec& s) { s.dcp_sharded = false; });
  builder.Layers("f", FullSpec(), 2).Layers("s", SlidingSpec(), 2).Layers("r", replicated, 4);
  builder.config().dcp = 2;
  const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
  ASSERT_EQ(FailureOf(plan), "planned");
  EXPECT_EQ(plan.groups.size(), 2U) << "sharded and replicated layers are two types";
}

// Methods and layers that mark a draft.
struct DraftCase {
  std::string name;
  EngineVersion version;
  std::string method;
  bool marked_spec;
  bool block_drop_disabled;
  int eagle_group;  // -1: none
};

void PrintTo(const DraftCase& c, std::ostream* out) { *out << c.name; }

class DraftGroup : public ::testing::TestWithParam<DraftCase> {};

TEST_P(DraftGroup, IsMarked) {
  CaseBuilder builder;
  builder.Layers("k", MambaSpec(), 3).Layers("m", MlaSpec(), 2);
  builder.Layers(
      "d", With(MlaSpec(), [](EngineSpec& s) { s.non_causal_multi_token_decode = GetParam().marked_spec; }),
      1);
  builder.config().speculative = EngineSpeculative{GetParam().method, 3, 1, GetParam().block_drop_disabled};
  const EnginePlan plan = PlanEngine(builder.engine_case(), GetParam().version);
  ASSERT_EQ(plan.groups.size(), 2U);
  for (int g = 0; g < 2; ++g)
    EXPECT_EQ(plan.groups[static_cast<std::size_t>(g)].eagle, g == GetParam().eagle_group);
}

INSTANTIATE_TEST_SUITE_P(, DraftGroup,
                         ::testing::Values(DraftCase{"by_its_flag", kB, "dspark", true, false, 1},
                                           DraftCase{"not_without_a_sign", kB, "dspark", false, false, -1},
                                           DraftCase{"by_its_place", kB, "mtp", false, false, 1},
                                           DraftCase{"not_for_ngram", kB, "ngram", true, false, -1},
                                           DraftCase{"not_where_blocks_are_kept", kB, "dspark", true, true,
                                                     -1},
                                           DraftCase{"not_in_2026_08", kA, "mtp", true, false, -1}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace kvasir::vllm
