// Faults of vLLM's page sizes and pipeline stages.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/engine_cases.h"
#include "tests/testing/native_plan.h"

namespace kvasir {
namespace {

using testing::CaseBuilder;
using testing::FullSpec;
using testing::GroupSizes;
using testing::kGib;
using testing::MambaSpec;
using testing::MlaSpec;
using testing::SpecOfGroup;
using vllm::EngineErrorKind;
using vllm::EnginePlan;
using vllm::EngineSpec;
using vllm::EngineVersion;

// https://github.com/vllm-project/vllm/issues/38979, https://github.com/vllm-project/vllm/issues/41153,
// https://github.com/vllm-project/vllm/pull/40128, https://github.com/vllm-project/vllm/issues/46480: hybrids
// whose pages do not divide each other.
TEST(Issue38979, PagesThatDoNotDivideArePlanned) {
  EngineSpec quantised = FullSpec(4, 256);
  quantised.state_content_bytes = 194;  // 12,416 bytes a block
  CaseBuilder builder(1024);
  builder.Layers("f", quantised, 4).Layers("k", MambaSpec(12648448 / 4), 12);
  const EnginePlan a = PlanEngine(builder.engine_case(), EngineVersion::k2026_08);
  ASSERT_TRUE(a.failure.has_value()) << "told beforehand, with the layer";
  EXPECT_EQ(a.failure->kind, EngineErrorKind::kNotImplementedError);
  EXPECT_NE(a.failure->message.find("layer f.0 has a page of 12416 bytes"), std::string::npos);
  const EnginePlan b = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_FALSE(b.failure.has_value());
  EXPECT_EQ(SpecOfGroup(b, 0).page_size_padded, 12648448);
  EXPECT_EQ(testing::NativePlan({{4, testing::NativeFull()}, {12, testing::NativeState(193)}}).pools.size(),
            2U);
}

// https://github.com/vllm-project/vllm/issues/43626, https://github.com/vllm-project/vllm/pull/45207: a
// draft's page above the state's padded one.
TEST(Issue43626, TheStateIsPaddedAndKeepsItsBlock) {
  EngineSpec state = MambaSpec(16000);
  state.page_size_padded = 65536;
  CaseBuilder builder;
  builder.Layers("f", FullSpec(8), 4).Layers("k", state, 4).Layers("d", FullSpec(16), 4);
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_FALSE(plan.failure.has_value());
    EXPECT_EQ(SpecOfGroup(plan, 1).page_size_padded, 131072);
    EXPECT_EQ(SpecOfGroup(plan, 1).block_size, state.block_size);
  }
}

// https://github.com/vllm-project/vllm/pull/55622: a grouped-query draft beside GLM-5.3's states and
// indexers.
TEST(Pull55622, AGroupedQueryDraftBesideSharedSlots) {
  EngineSpec indexer = MlaSpec(132);
  indexer.dtype = vllm::ElementType::kUint8;
  indexer.tokens_per_state = {4, 1};
  CaseBuilder builder;
  builder.Layers("m", MlaSpec(), 4)
      .Layers("i", indexer, 4)
      .Layers("k", MambaSpec(), 8)
      .Layers("d", FullSpec(4), 1);
  const EnginePlan refused = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_TRUE(refused.failure.has_value()) << "told beforehand";
  EXPECT_EQ(refused.failure->kind, EngineErrorKind::kNotImplementedError);
  builder.config().kv_cache_layout = vllm::KvLayout::kBLHNC;
  EXPECT_FALSE(PlanEngine(builder.engine_case(), EngineVersion::k2026_11).failure.has_value());
  const Plan native = testing::NativePlan({{4, testing::NativeLatent()}, {8, testing::NativeState()}},
                                          {{1, testing::NativeFull()}});
  EXPECT_EQ(native.pools.size(), 2U) << "one group more, not one pool more";
}

// https://github.com/vllm-project/vllm/pull/46992: equal bytes that are indexed differently.
TEST(Pull46992, EqualPagesOfUnequalIndexingDoNotMerge) {
  EngineSpec strided = FullSpec();
  strided.indexes_kv_by_block_stride = true;
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 2).Layers("g", strided, 2).Layers("k", MambaSpec(), 2);
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_08);
  EXPECT_EQ(GroupSizes(plan), (std::vector<std::size_t>{2, 2, 2}));
}

// https://github.com/vllm-project/vllm/issues/54458: the floor of a request is a block of every group.
TEST(Issue54458, TheFloorOfARequestIsTold) {
  EngineSpec full = FullSpec();
  full.block_size = 7808;
  CaseBuilder builder(1);
  builder.Layers("f", full, 1).Layers("k", MambaSpec(7808 * 8 * 512 / 4), 22);
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_EQ(plan.groups.size(), 23U);
  EXPECT_EQ(plan.per_worker[0].needed_bytes, 23 * *plan.per_worker[0].pool_bytes_per_block)
      << "for one token";
}

// https://github.com/vllm-project/vllm/issues/54711, https://github.com/vllm-project/vllm/pull/54793: a stage
// without attention layers gets tensors for another stage's.
TEST(Issue54711, ForeignTensorsAreNamedAndTheGroupsHoldOwnLayersOnly) {
  CaseBuilder builder;
  EngineSpec indexer = MlaSpec(288);
  builder.Layers("m", MlaSpec(), 2).Layers("i", indexer, 2).Layers("k", MambaSpec(), 4);
  builder.Stages({0, 4, 8}, {kGib, kGib});
  builder.config().kv_cache_layout = vllm::KvLayout::kBLHNC;
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_FALSE(plan.failure.has_value()) << plan.failure->message;
  const bool warned = std::any_of(plan.warnings.begin(), plan.warnings.end(), [](const auto& warning) {
    return warning.address == "https://github.com/vllm-project/vllm/issues/54711";
  });
  EXPECT_TRUE(warned);
  const EnginePlan meant = PlanEngineAsMeant(builder.engine_case(), EngineVersion::k2026_11);
  for (const vllm::EngineTensor& tensor : meant.workers[1].tensors) {
    EXPECT_TRUE(std::all_of(tensor.layers.begin(), tensor.layers.end(),
                            [](std::int32_t layer) { return layer >= 4; }));
  }
  EXPECT_LT(meant.workers[1].tensors.size(), plan.workers[1].tensors.size());
  for (const vllm::EngineGroup& group : plan.workers[1].groups) {
    EXPECT_TRUE(
        std::all_of(group.layers.begin(), group.layers.end(), [](std::int32_t layer) { return layer >= 4; }));
  }
}

// https://github.com/vllm-project/vllm/issues/42927: stages of unequal numbers of layers.
TEST(Issue42927, UnequalStagesArePlanned) {
  CaseBuilder builder(32768);
  for (int i = 0; i < 4; ++i) builder.Layers("k", MambaSpec(), 3).Layers("f", FullSpec(), 1);
  builder.Stages({0, 6, 16}, {kGib, 2 * kGib});
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_FALSE(plan.failure.has_value()) << plan.failure->message;
    EXPECT_EQ(plan.workers[0].num_blocks, plan.workers[1].num_blocks);
  }
}

// https://github.com/vllm-project/vllm/pull/23974: every k-th layer together, so that no stage has an empty
// group.
TEST(Pull23974, StagesOfTenAndElevenAreBalanced) {
  for (const auto& [full, sliding, cut] : {std::tuple{10, 11, 10}, {11, 10, 11}}) {
    CaseBuilder builder;
    for (int i = 0; i < 21; ++i)
      builder.Layers("l", i % 2 == (full > sliding ? 0 : 1) ? FullSpec() : testing::SlidingSpec(), 1);
    builder.Stages({0, cut, 21}, {kGib, kGib});
    for (const EngineVersion version : testing::kBothVersions) {
      const EnginePlan plan = PlanEngine(builder.engine_case(), version);
      ASSERT_FALSE(plan.failure.has_value());
      ASSERT_EQ(plan.groups.size(), 2U);
      for (const vllm::EngineWorkerPlan& worker : plan.workers) {
        for (const vllm::EngineGroup& group : worker.groups) EXPECT_GE(group.layers.size(), 5U);
      }
    }
  }
}

}  // namespace
}  // namespace kvasir
