// Faults of the capacity that vLLM checks and prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/engine_cases.h"

namespace kvasir {
namespace {

using testing::CaseBuilder;
using testing::FullSpec;
using testing::GroupSizes;
using testing::MlaSpec;
using testing::SlidingMlaSpec;
using testing::SlidingSpec;
using vllm::EngineErrorKind;
using vllm::EnginePlan;
using vllm::EngineSpec;
using vllm::EngineVersion;

constexpr std::int64_t kPage = 65536;

// https://github.com/vllm-project/vllm/issues/35541, https://github.com/vllm-project/vllm/pull/47272: blocks
// for exactly one request, one of which is the null block, start and then never serve it.
TEST(Issue35541, BlocksForExactlyOneRequestAreRefused) {
  for (const EngineVersion version : testing::kBothVersions) {
    for (const auto& [blocks, fits] : {std::pair{64, false}, {65, true}}) {
      CaseBuilder builder(1024, blocks * kPage);
      builder.Layers("f", FullSpec(), 1);
      EXPECT_EQ(PlanEngine(builder.engine_case(), version).failure.has_value(), !fits);
    }
  }
}

// https://github.com/vllm-project/vllm/pull/48724: auto fit on 8 blocks of 128 tokens.
TEST(Pull48724, AutoFitLeavesTheNullBlockOut) {
  EngineSpec full = FullSpec();
  full.block_size = 128;
  CaseBuilder builder(4096, 8 * 8 * kPage);
  builder.Layers("f", full, 1);
  builder.config().auto_fit = true;
  for (const EngineVersion version : testing::kBothVersions) {
    EXPECT_EQ(PlanEngine(builder.engine_case(), version).max_model_len, 896) << "not 1024";
  }
}

// https://github.com/vllm-project/vllm/issues/27181: an override of one block can serve nothing.
TEST(Issue27181, AnOverrideOfOneBlockIsRefusedAtStartup) {
  CaseBuilder builder;
  builder.Layers("f", FullSpec(), 4);
  builder.config().num_gpu_blocks_override = 1;
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_TRUE(plan.failure.has_value());
    EXPECT_EQ(plan.failure->kind, EngineErrorKind::kValueError);
  }
}

// https://github.com/vllm-project/vllm/issues/39734: a request within the length limit and beyond the pool.
TEST(Issue39734, ALengthBeyondThePoolIsRefused) {
  CaseBuilder builder(8192, 100 * kPage);
  builder.Layers("f", FullSpec(), 1);
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_TRUE(plan.failure.has_value());
  EXPECT_EQ(plan.per_worker[0].estimated_max_model_len, 99 * 16);
}

// https://github.com/vllm-project/vllm/issues/40691: the printed tokens and the printed concurrency must
// agree.
TEST(Issue40691, TokensAreConcurrencyTimesLength) {
  CaseBuilder builder(32768, 8 * testing::kGib);
  builder.Layers("f", FullSpec(), 6).Layers("s", SlidingSpec(), 24);
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_FALSE(plan.failure.has_value());
    EXPECT_EQ(plan.kv_cache_size_tokens, static_cast<std::int64_t>(*plan.max_concurrency * 32768.0));
  }
}

// https://github.com/vllm-project/vllm/pull/48317: groups of unequal bytes draw blocks, not bytes, from one
// pool.
TEST(Pull48317, BlocksOfEachGroupAreSummed) {
  CaseBuilder builder(1024, 64 << 20);
  builder.Layers("m", MlaSpec(576), 2).Layers("i", MlaSpec(288), 2).Layers("s", SlidingMlaSpec(), 2);
  builder.config().kv_cache_layout = vllm::KvLayout::kBLHNC;
  builder.config().max_num_batched_tokens = 128;
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_FALSE(plan.failure.has_value());
  ASSERT_EQ(GroupSizes(plan), (std::vector<std::size_t>{4, 2}));
  // 16 blocks of 64 tokens, and cdiv(255, 64) + 1 = 5 for the window.
  EXPECT_EQ(plan.per_worker[0].needed_bytes, 21 * 2 * (73728 + 36864));
  EXPECT_EQ(plan.max_concurrency, static_cast<double>(plan.workers[0].num_blocks) / 21.0);
}

// DeepSeek-V4-Flash as a list of caches: 2 windowed layers, then 21 with one state for 4 tokens and an
// indexer, and 20 with one for 128, each with its compressor's states and a window.
CaseBuilder DeepSeekV4Flash() {
  const auto latent = [](std::int64_t head_size, std::int64_t tokens) {
    EngineSpec spec = MlaSpec(head_size);
    spec.block_size = 256;
    spec.dtype = vllm::ElementType::kUint8;
    spec.tokens_per_state = {tokens, 1};
    spec.alignment = 576;
    spec.model_version = "deepseek_v4";
    return spec;
  };
  const auto state = [](std::int64_t block, std::int64_t head_size, std::int64_t window) {
    EngineSpec spec = SlidingMlaSpec(window, head_size);
    spec.block_size = block;
    spec.dtype = vllm::ElementType::kFloat32;
    spec.alignment = 576;
    spec.model_version = "deepseek_v4";
    return spec;
  };
  EngineSpec window = state(64, 584, 128);
  window.dtype = vllm::ElementType::kUint8;
  CaseBuilder builder(131072, 60 * testing::kGib);
  builder.Layers("swa", window, 2);
  for (int i = 0; i < 41; ++i) {
    builder.Layers("swa", window, 1);
    if (i % 2 == 0) {
      builder.Layers("c4a", latent(584, 4), 1).Layers("c4i", latent(132, 4), 1);
      builder.Layers("st4", state(4, 2048, 8), 1).Layers("st4i", state(4, 512, 8), 1);
    } else {
      builder.Layers("c128", latent(584, 128), 1).Layers("st128", state(8, 1024, 128), 1);
    }
  }
  builder.config().block_size = 256;
  builder.config().model_type = "deepseek_v4";
  builder.config().kv_cache_layout = vllm::KvLayout::kBLHNC;
  return builder;
}

// https://github.com/vllm-project/vllm/issues/54703: the five groups of the report, and which of them decides
// admission.
TEST(Issue54703, TheFiveGroupsAndTheirBytes) {
  CaseBuilder builder = DeepSeekV4Flash();
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_08);
  ASSERT_FALSE(plan.failure.has_value());
  EXPECT_EQ(GroupSizes(plan), (std::vector<std::size_t>{62, 22, 21, 42, 20}));
  std::vector<std::int64_t> bytes;
  for (const vllm::EngineGroup& group : plan.groups) {
    std::int64_t& sum = bytes.emplace_back(0);
    for (const auto& member : std::get<vllm::UniformTypeSpecs>(group.spec).members) {
      sum += *PageBytes(plan.specs[static_cast<std::size_t>(member.spec)]);
    }
  }
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{1002240, 823680, 786240, 870912, 656640}));
}

// https://github.com/vllm-project/vllm/issues/51041, https://github.com/vllm-project/vllm/pull/52495: one
// request is charged more than it takes.
TEST(Issue51041, TheOvercountIsToldAndGoneSince202611) {
  CaseBuilder builder = DeepSeekV4Flash();
  const EnginePlan a = PlanEngine(builder.engine_case(), EngineVersion::k2026_08);
  const EnginePlan b = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  EXPECT_GT(*a.per_worker[0].needed_bytes, *b.per_worker[0].needed_bytes);
  const bool warned = std::any_of(a.warnings.begin(), a.warnings.end(), [](const auto& warning) {
    return warning.address == "https://github.com/vllm-project/vllm/issues/51041";
  });
  EXPECT_TRUE(warned);
  EXPECT_EQ(*b.per_worker[0].needed_bytes % *b.per_worker[0].pool_bytes_per_block, 0)
      << "whole blocks of the stride";
}

// https://github.com/vllm-project/vllm/pull/40384: states of constant size do not shrink the tokens that
// memory holds beyond their own blocks.
TEST(Pull40384, StatesCostTheirBlocksOnly) {
  CaseBuilder builder(131072, 8 * testing::kGib);
  builder.Layers("f", FullSpec(), 4).Layers("k", testing::MambaSpec(), 12);
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_FALSE(plan.failure.has_value());
  const double blocks = static_cast<double>(plan.workers[0].num_blocks);
  EXPECT_EQ(plan.max_concurrency, blocks / (8192 + 3)) << "three groups of states, one block each";
}

// https://github.com/vllm-project/vllm/issues/28228: the numbers behind the printed capacity are in the plan.
TEST(Issue28228, TheArithmeticIsInThePlan) {
  CaseBuilder builder(120000, 20 * testing::kGib);
  builder.Layers("m", MlaSpec(), 7).Layers("k", testing::MambaSpec(18432), 20);
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_08);
  ASSERT_FALSE(plan.failure.has_value());
  EXPECT_EQ(GroupSizes(plan), (std::vector<std::size_t>{7, 7, 7, 6}));
  EXPECT_EQ(plan.per_worker[0].pool_bytes_per_block, 7 * 73728);
  EXPECT_EQ(plan.workers[0].num_blocks, 20 * testing::kGib / (7 * 73728));
  EXPECT_EQ(plan.per_worker[0].needed_bytes, (1875 + 3) * 7 * 73728);
}

}  // namespace
}  // namespace kvasir
