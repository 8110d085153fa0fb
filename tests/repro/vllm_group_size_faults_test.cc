// Faults of vLLM's one size of a group: layers that only pad, and one odd layer that takes every group apart.
// The vllm rulesets say beforehand what that engine will do; the native one shares memory by bytes, without
// padding layers.
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
using testing::KimiK3Dspark;
using testing::MambaSpec;
using testing::NativeFull;
using testing::NativeLatent;
using testing::NativePlan;
using testing::NativeSliding;
using testing::NativeState;
using testing::SlidingSpec;
using testing::WorstPaddingBasisPoints;
using vllm::EngineCase;
using vllm::EnginePlan;
using vllm::EngineSpec;
using vllm::EngineVersion;

EngineCase FullAndSliding(int full, int sliding) {
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), full).Layers("s", SlidingSpec(), sliding);
  return builder.engine_case();
}

std::size_t Groups(const Plan& plan) {
  std::size_t groups = 0;
  for (const PlanPool& pool : plan.pools) groups += pool.groups.size();
  return groups;
}

// https://github.com/vllm-project/vllm-ascend/issues/14314: the draft raises padding from 4.35 % to 26.09 %.
TEST(AscendIssue14314, TheEnginesPaddingIsToldAndTheNativeHasNone) {
  const EnginePlan drafted = PlanEngine(KimiK3Dspark(), EngineVersion::k2026_11);
  ASSERT_EQ(drafted.log.size(), 1U);
  EXPECT_EQ(drafted.log[0], "Add 18 padding layers, may waste at most 26.09% KV cache memory");
  EngineCase alone = KimiK3Dspark();
  alone.layers.resize(93);
  EXPECT_EQ(PlanEngine(alone, EngineVersion::k2026_11).log[0],
            "Add 3 padding layers, may waste at most 4.35% KV cache memory");
  const Plan native = NativePlan({{69, NativeState()}, {24, NativeLatent()}}, {{5, NativeLatent()}});
  EXPECT_LT(WorstPaddingBasisPoints(native), 435);
}

// https://github.com/vllm-project/vllm-ascend/pull/14765: the balanced split of that model.
TEST(AscendPull14765, FourGroups) {
  std::vector<std::size_t> sizes = GroupSizes(PlanEngine(KimiK3Dspark(), EngineVersion::k2026_08));
  std::sort(sizes.rbegin(), sizes.rend());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{29, 23, 23, 23}));
}

// https://github.com/vllm-project/vllm/pull/51742: one odd layer, and every layer is a group.
TEST(Pull51742, AnOddLayerCostsTheEngine46GroupsAndTheNativeOne) {
  CaseBuilder builder;
  builder.Layers("k", MambaSpec(), 30).Layers("f", FullSpec(), 10).Layers("s", SlidingSpec(), 5);
  EngineSpec odd = FullSpec();
  odd.head_size_v = 64;
  odd.page_size_padded = 65536;
  builder.Layers("o", odd, 1);
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  EXPECT_EQ(plan.groups.size(), 46U);
  KeyValueCache native_odd = NativeFull();
  native_odd.value_dim = 64;
  const Plan native =
      NativePlan({{30, NativeState()}, {10, NativeFull()}, {5, NativeSliding()}, {1, native_odd}});
  EXPECT_LE(Groups(native), 10U);
  EXPECT_EQ(native.pools.size(), 3U);
}

struct CountCase {
  std::string address;
  int full;
  int sliding;
  std::vector<std::size_t> engine;
};

// https://github.com/vllm-project/vllm/pull/49472: any irregular count, and the counts of the others.
TEST(Pull49472, IrregularCountsPadTheEngineAndNotTheNative) {
  const std::vector<CountCase> rows = {
      // Size 10 would serve both; today 20 with 15 and 15.
      {"https://github.com/vllm-project/vllm/issues/54106", 20, 30, {20, 15, 15}},
      {"https://github.com/vllm-project/vllm/issues/54104", 20, 30, {20, 15, 15}},
      // gpt-oss-120b with an eagle3 draft: two groups and one padding layer, no longer 17.
      {"https://github.com/vllm-project/vllm/pull/29303", 19, 18, {19, 18}},
      {"https://github.com/vllm-project/vllm/pull/31275", 9, 7, {9, 7}},
      {"https://github.com/vllm-project/vllm/pull/31275", 3, 7, {3, 3, 2, 2}},
      {"https://github.com/vllm-project/vllm/pull/49472", 7, 11, {7, 6, 5}}};
  for (const CountCase& row : rows) {
    EXPECT_EQ(GroupSizes(PlanEngine(FullAndSliding(row.full, row.sliding), EngineVersion::k2026_11)),
              row.engine)
        << row.address;
    const Plan native = NativePlan({{row.full, NativeFull()}, {row.sliding, NativeSliding()}});
    EXPECT_LT(WorstPaddingBasisPoints(native), 1000) << row.address;
    EXPECT_EQ(native.pools.size(), 2U) << row.address;
  }
}

// https://github.com/vllm-project/vllm/pull/48691: draft layers of the target's own spec fold into its group.
TEST(Pull48691, DraftLayersFoldIntoAGroupOfTheirSpecOrGetTheirOwn) {
  for (const EngineVersion version : testing::kBothVersions) {
    CaseBuilder same;
    same.Layers("f", FullSpec(), 8).Layers("s", SlidingSpec(), 8).Layers("d", FullSpec(), 3);
    EXPECT_EQ(GroupSizes(PlanEngine(same.engine_case(), version)), (std::vector<std::size_t>{11, 8}));
    CaseBuilder other;
    other.Layers("f", FullSpec(), 8).Layers("s", SlidingSpec(), 8).Layers("d", FullSpec(4), 8);
    EXPECT_EQ(GroupSizes(PlanEngine(other.engine_case(), version)), (std::vector<std::size_t>{8, 8, 8}));
  }
}

// https://github.com/vllm-project/vllm-ascend/pull/16948: a single small state beside 36 large ones.
TEST(AscendPull16948, OneSmallStateDoesNotTakeTheOthersApart) {
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 12).Layers("k", MambaSpec(16384), 36).Layers("p", MambaSpec(1024), 1);
  builder.config().kv_cache_layout = vllm::KvLayout::kLBNHC;
  EXPECT_EQ(PlanEngine(builder.engine_case(), EngineVersion::k2026_11).groups.size(), 49U)
      << "told beforehand";
  // With blocks outermost the states are cut to what a block holds.
  builder.config().kv_cache_layout = vllm::KvLayout::kBLHNC;
  EXPECT_EQ(GroupSizes(PlanEngine(builder.engine_case(), EngineVersion::k2026_11)),
            (std::vector<std::size_t>{12, 12, 12, 12, 1}));
  const Plan native = NativePlan({{12, NativeFull()}, {36, NativeState(32)}, {1, NativeState(2)}});
  EXPECT_EQ(native.pools.size(), 2U);
}

// https://github.com/local-inference-lab/vllm/pull/603: pages of unequal bytes are balanced by bytes.
TEST(ForkPull603, NativeBlocksAreCutByBytes) {
  KeyValueCache narrow = NativeFull();
  narrow.kv_heads = 1;
  const Plan native = NativePlan({{10, NativeFull()}, {30, narrow}, {6, NativeState()}});
  for (const PlanPool& pool : native.pools) {
    EXPECT_EQ(pool.blocks_per_parent * pool.stride_bytes, native.parent_bytes.value());
  }
  EXPECT_LT(WorstPaddingBasisPoints(native), 1000);
}

}  // namespace
}  // namespace kvasir
