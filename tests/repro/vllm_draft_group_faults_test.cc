// Faults of vLLM's draft groups, of context parallelism in hybrids, and of the disabled hybrid manager.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/engine_cases.h"

namespace kvasir {
namespace {

using testing::CaseBuilder;
using testing::FullSpec;
using testing::GroupSizes;
using testing::KimiK3Dspark;
using testing::MambaSpec;
using testing::MlaSpec;
using testing::SlidingSpec;
using testing::SpecOfGroup;
using vllm::EngineErrorKind;
using vllm::EnginePlan;
using vllm::EngineSpec;
using vllm::EngineSpeculative;
using vllm::EngineVersion;

bool Warns(const EnginePlan& plan, const std::string& address) {
  return std::any_of(plan.warnings.begin(), plan.warnings.end(),
                     [&](const vllm::EngineWarning& warning) { return warning.address == address; });
}

// https://github.com/vllm-project/vllm/pull/52047, https://github.com/vllm-project/vllm/pull/55390: on the
// hybrid path no group was the draft's.
TEST(Pull52047, TheDraftsGroupIsMarkedSince202611AndItsLackIsToldBefore) {
  const EnginePlan before = PlanEngine(KimiK3Dspark(), EngineVersion::k2026_08);
  EXPECT_TRUE(Warns(before, "https://github.com/vllm-project/vllm/pull/52047"));
  const EnginePlan after = PlanEngine(KimiK3Dspark(), EngineVersion::k2026_11);
  EXPECT_TRUE(after.groups[3].eagle);
  EXPECT_FALSE(Warns(after, "https://github.com/vllm-project/vllm/pull/57616"));
}

// https://github.com/vllm-project/vllm/issues/57032, https://github.com/vllm-project/vllm/pull/57616: a draft
// whose layers nobody recognises makes every group the draft's.
TEST(Pull57616, ADraftThatIsNotFoundIsTold) {
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 4).Layers("k", MambaSpec(), 4).Layers("d", SlidingSpec(), 4);
  builder.config().speculative = EngineSpeculative{"dflash", 7, 1, false};
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_FALSE(plan.failure.has_value());
  EXPECT_TRUE(Warns(plan, "https://github.com/vllm-project/vllm/pull/57616"));
  EXPECT_FALSE(plan.log.empty()) << "the engine logs it for mamba models";
  builder.config().speculative->method = "mtp";
  EXPECT_TRUE(PlanEngine(builder.engine_case(), EngineVersion::k2026_11).groups[2].eagle)
      << "found by its place";
}

// https://github.com/vllm-project/vllm/issues/51771: several attention groups and the block that a draft
// drops.
TEST(Issue51771, FourAttentionGroupsHaveOneDraft) {
  CaseBuilder builder;
  builder.Layers("a", FullSpec(), 4).Layers("b", SlidingSpec(512), 4).Layers("c", SlidingSpec(1024), 4);
  builder.Layers("d", testing::ChunkedSpec(), 4);
  builder.config().speculative = EngineSpeculative{"mtp", 1, 1, false};
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_EQ(plan.groups.size(), 4U);
  EXPECT_EQ(
      std::count_if(plan.groups.begin(), plan.groups.end(), [](const auto& group) { return group.eagle; }),
      1);
  EXPECT_TRUE(plan.groups[3].eagle);
}

// https://github.com/vllm-project/vllm/pull/53598: context parallelism multiplies the blocks of sharded
// groups only.
TEST(Pull53598, EachGroupHasItsOwnContextFactor) {
  EngineSpec state = MambaSpec(1024);
  state.block_size = 96;
  state.mamba_cache_mode = vllm::MambaCacheMode::kAlign;
  CaseBuilder builder;
  builder.Layers("m", MlaSpec(), 3).Layers("k", state, 3);
  builder.config().dcp = 4;
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_FALSE(plan.failure.has_value());
    EXPECT_EQ(plan.scheduler_block_size, 768) << "lcm of 64 * 4 and 96, not of 96 * 4";
    EXPECT_EQ(plan.hash_block_size, 32);
  }
}

// https://github.com/vllm-project/vllm/pull/36388, https://github.com/vllm-project/vllm/issues/42911: without
// the hybrid manager a model with states cannot be planned.
TEST(Issue42911, StatesWithoutTheHybridManagerGetAClearRefusal) {
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 2).Layers("k", MambaSpec(), 6);
  builder.config().disable_hybrid_kv_cache_manager = true;
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_TRUE(plan.failure.has_value());
    EXPECT_EQ(plan.failure->kind, EngineErrorKind::kValueError);
    EXPECT_EQ(plan.failure->message,
              "the layers cannot be planned as one type of cache; leave the hybrid manager on");
  }
}

// https://github.com/vllm-project/vllm/pull/48817: full blocks of 64 and sliding ones of 16.
TEST(Pull48817, PromotedLayersAdoptTheFullBlock) {
  EngineSpec full = FullSpec();
  full.block_size = 64;
  CaseBuilder builder;
  builder.Layers("f", full, 2).Layers("s", SlidingSpec(), 2);
  builder.config().disable_hybrid_kv_cache_manager = true;
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_EQ(GroupSizes(plan), (std::vector<std::size_t>{4}));
    EXPECT_EQ(SpecOfGroup(plan, 0).block_size, 64);
  }
}

// https://github.com/vllm-project/vllm/pull/51180: a hidden-state group's block must be divisible by the hash
// block.
TEST(Pull51180, TheHashBlockDividesTheHiddenStatesBlock) {
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 4).Layers("s", SlidingSpec(), 4).Layers("h", testing::HiddenSpec(3), 1);
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_FALSE(plan.failure.has_value());
    EXPECT_EQ(SpecOfGroup(plan, 2).block_size % *plan.hash_block_size, 0);
  }
}

}  // namespace
}  // namespace kvasir
