// What memory holds: the null block, one request's need, the fitted length, the printed capacity, block
// sizes.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/concurrency.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/engine_cases.h"

namespace kvasir::vllm {
namespace {

using testing::CaseBuilder;
using testing::FullSpec;
using testing::MambaSpec;
using testing::MlaSpec;
using testing::SlidingSpec;

constexpr auto kA = EngineVersion::k2026_08;
constexpr auto kB = EngineVersion::k2026_11;
constexpr std::int64_t kBlock = 4 * 65536;  // of four FullSpec layers

EngineSpec With(EngineSpec spec, const std::function<void(EngineSpec&)>& change) {
  change(spec);
  return spec;
}

// Four full layers, a request of 1,024 tokens: 64 blocks of 16.
CaseBuilder FourLayers(std::int64_t blocks) {
  CaseBuilder builder(1024, blocks * kBlock);
  builder.Layers("f", FullSpec(), 4);
  return builder;
}

struct MemoryCase {
  std::int64_t blocks;
  std::string outcome;
};

void PrintTo(const MemoryCase& c, std::ostream* out) { *out << c.blocks << " blocks"; }

class Memory : public ::testing::TestWithParam<MemoryCase> {};

TEST_P(Memory, HoldsTheNullBlockAndARequest) {
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(FourLayers(GetParam().blocks).engine_case(), version);
    EXPECT_EQ(plan.failure.has_value() ? plan.failure->message : "fits", GetParam().outcome);
    EXPECT_EQ(plan.per_worker[0].check_memory, (GetParam().blocks - 1) * kBlock);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , Memory,
    ::testing::Values(
        MemoryCase{
            0,
            "no memory is left for cache blocks: 0 bytes hold no block beside the null block of 262144; give "
            "the cache more memory"},
        MemoryCase{
            1,
            "no memory is left for cache blocks: 262144 bytes hold no block beside the null block of 262144; "
            "give the cache more memory"},
        // 64 blocks are exactly one request, and one of them is the null block.
        MemoryCase{
            64,
            "one request of 1024 tokens needs 0.02 GiB of cache and 0.02 GiB are there; at most 1008 tokens "
            "fit; lower max_model_len or give the cache more memory"},
        MemoryCase{65, "fits"}),
    [](const auto& param) { return std::to_string(param.param.blocks); });

TEST(AutoFit, LowersTheLengthToWhatFits) {
  for (const EngineVersion version : testing::kBothVersions) {
    for (const auto& [blocks, length] : {std::pair{2, 16}, {9, 128}, {64, 1008}, {65, 1024}, {1000, 1024}}) {
      CaseBuilder builder = FourLayers(blocks);
      builder.config().auto_fit = true;
      const EnginePlan plan = PlanEngine(builder.engine_case(), version);
      EXPECT_FALSE(plan.failure.has_value());
      EXPECT_EQ(plan.max_model_len, length) << blocks;
    }
    CaseBuilder nothing = FourLayers(1);
    nothing.config().auto_fit = true;
    EXPECT_EQ(PlanEngine(nothing.engine_case(), version).failure->kind, EngineErrorKind::kValueError);
  }
}

TEST(AutoFit, FollowsTheTightestWorker) {
  CaseBuilder builder(1024, 0);
  builder.Layers("f", FullSpec(), 4);
  builder.Stages({0, 2, 4}, {33 * 2 * 65536, 17 * 2 * 65536});
  builder.config().auto_fit = true;
  EXPECT_EQ(PlanEngine(builder.engine_case(), kB).max_model_len, 256);
}

TEST(Override, ReplacesTheBlocksAndTheMemoryTheyAreCheckedAgainst) {
  for (const EngineVersion version : testing::kBothVersions) {
    for (const std::int64_t blocks : {0, 1, 64}) {
      CaseBuilder builder = FourLayers(1000);
      builder.config().num_gpu_blocks_override = blocks;
      EXPECT_EQ(PlanEngine(builder.engine_case(), version).failure->kind, EngineErrorKind::kValueError);
    }
    CaseBuilder builder = FourLayers(1);
    builder.config().num_gpu_blocks_override = 100;
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_FALSE(plan.failure.has_value());
    EXPECT_EQ(plan.workers[0].num_blocks, 100);
  }
}

TEST(Needed, SumsTheGroupsBlocks) {
  // Full: 64 blocks; sliding of window 512 and 128 tokens in flight: cdiv(639, 16) + 1 = 41. Blocks of 2
  // pages.
  CaseBuilder builder(1024, 1 << 30);
  builder.Layers("f", FullSpec(), 2).Layers("s", SlidingSpec(512), 2);
  builder.config().max_num_batched_tokens = 128;
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    EXPECT_EQ(plan.per_worker[0].needed_bytes, (64 + 41) * 2 * 65536);
  }
}

TEST(Needed, AWrapperIsChargedByLayerOrByBlock) {
  // 64 blocks of 64 + 32 + 32 KiB, either way.
  CaseBuilder builder(1024, 1 << 30);
  builder.Layers("f", FullSpec(8), 1).Layers("g", FullSpec(4), 2);
  for (const EngineVersion version : testing::kBothVersions) {
    EXPECT_EQ(PlanEngine(builder.engine_case(), version).per_worker[0].needed_bytes, 64 * 131072);
  }
  // Alignment widens 2026-11's blocks.
  CaseBuilder aligned(1024, 1 << 30);
  aligned.Layers("f", With(FullSpec(5), [](EngineSpec& s) { s.block_stride_alignment = 65536; }), 1)
      .Layers("g", FullSpec(4), 1);
  EXPECT_EQ(PlanEngine(aligned.engine_case(), kA).per_worker[0].needed_bytes, 64 * (40960 + 32768));
  EXPECT_EQ(PlanEngine(aligned.engine_case(), kB).per_worker[0].needed_bytes, 64 * 131072);
}

TEST(Concurrency, DividesDoublesAndTruncates) {
  const auto capacity = PrintedCapacity(2774, 72, 131072);
  ASSERT_TRUE(capacity.ok());
  EXPECT_EQ(capacity->max_concurrency, 2774.0 / 72.0);
  EXPECT_EQ(capacity->tokens, 5049912);
  EXPECT_EQ(PrintedCapacity(7, 7, 1000)->max_concurrency, 1.0);
  EXPECT_EQ(PrintedCapacity(1, 3, 1000)->tokens, 333);
  const auto none = PrintedCapacity(7, 0, 1000);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.failure().kind, EngineErrorKind::kZeroDivisionError);
  EXPECT_EQ(none.failure().stage, EngineStage::kConcurrency);
}

TEST(Concurrency, CountsTheNullBlockAsUsable) {
  const EnginePlan plan = PlanEngine(FourLayers(64).engine_case(), kB);
  EXPECT_TRUE(plan.failure.has_value()) << "yet the engine would print 1.00x for these blocks";
  EXPECT_EQ(PrintedCapacity(64, 64, 1024)->max_concurrency, 1.0);
}

TEST(Concurrency, ARequestWithoutBlocksDividesByZero) {
  CaseBuilder builder(448);
  builder.Layers("c", With(FullSpec(), [](EngineSpec& s) { s.kind = SpecKind::kCross; }), 1);
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_TRUE(plan.failure.has_value());
    EXPECT_EQ(plan.failure->stage, EngineStage::kConcurrency);
    EXPECT_EQ(plan.failure->kind, EngineErrorKind::kZeroDivisionError);
    EXPECT_FALSE(plan.workers.empty()) << "tensors were placed before";
  }
}

struct BlocksCase {
  std::string name;
  std::function<void(CaseBuilder&)> build;
  std::pair<std::int64_t, std::int64_t> a;  // scheduler and hash block; 0, 0: ValueError
  std::pair<std::int64_t, std::int64_t> b;
};

void PrintTo(const BlocksCase& c, std::ostream* out) { *out << c.name; }

class SchedulerBlockSizes : public ::testing::TestWithParam<BlocksCase> {};

TEST_P(SchedulerBlockSizes, Are) {
  for (const EngineVersion version : testing::kBothVersions) {
    CaseBuilder builder(1024);
    GetParam().build(builder);
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    const auto& expected = version == kA ? GetParam().a : GetParam().b;
    if (expected.first == 0) {
      ASSERT_TRUE(plan.failure.has_value());
      EXPECT_EQ(plan.failure->stage, EngineStage::kBlockSizes);
      EXPECT_EQ(plan.failure->kind, EngineErrorKind::kValueError);
      continue;
    }
    ASSERT_FALSE(plan.failure.has_value()) << plan.failure->message;
    EXPECT_EQ(plan.scheduler_block_size, expected.first);
    EXPECT_EQ(plan.hash_block_size, expected.second);
  }
}

// Blocks of 16 and 32 tokens in groups of their own.
void TwoGroups(CaseBuilder& builder) {
  builder.Layers("f", FullSpec(8), 2).Layers("s", SlidingSpec(512, 4), 2);
}

INSTANTIATE_TEST_SUITE_P(
    , SchedulerBlockSizes,
    ::testing::Values(
        BlocksCase{"one_group", [](CaseBuilder& b) { b.Layers("f", FullSpec(), 2); }, {16, 16}, {16, 16}},
        BlocksCase{"one_group_dcp",
                   [](CaseBuilder& b) {
                     b.Layers("f", FullSpec(), 2);
                     b.config().dcp = 4;
                   },
                   {64, 64},
                   {64, 64}},
        BlocksCase{"one_replicated_group",
                   [](CaseBuilder& b) {
                     b.Layers("f", With(FullSpec(), [](EngineSpec& s) { s.dcp_sharded = false; }), 2);
                     b.config().dcp = 4;
                   },
                   {64, 64},
                   {16, 16}},
        BlocksCase{"one_group_takes_the_configured_size",
                   [](CaseBuilder& b) {
                     b.Layers("f", FullSpec(), 2);
                     b.config().block_size = 32;
                   },
                   {32, 32},
                   {32, 32}},
        BlocksCase{"one_group_with_another_unit",
                   [](CaseBuilder& b) {
                     b.Layers("f", FullSpec(), 2);
                     b.config().prefix_match_unit = 8;
                   },
                   {16, 16},
                   {0, 0}},
        BlocksCase{"two_groups", TwoGroups, {32, 16}, {32, 16}},
        BlocksCase{"nobody_reads_hashes",
                   [](CaseBuilder& b) {
                     TwoGroups(b);
                     b.config().enable_prefix_caching = false;
                   },
                   {32, 32},
                   {32, 32}},
        BlocksCase{"a_connector_reads_hashes",
                   [](CaseBuilder& b) {
                     TwoGroups(b);
                     b.config().enable_prefix_caching = false;
                     b.config().kv_connector = true;
                   },
                   {32, 16},
                   {32, 16}},
        BlocksCase{"a_unit_that_divides",
                   [](CaseBuilder& b) {
                     TwoGroups(b);
                     b.config().prefix_match_unit = 8;
                   },
                   {32, 8},
                   {32, 8}},
        BlocksCase{"a_unit_that_does_not",
                   [](CaseBuilder& b) {
                     TwoGroups(b);
                     b.config().prefix_match_unit = 12;
                   },
                   {0, 0},
                   {0, 0}},
        BlocksCase{"states_that_do_not_align",
                   [](CaseBuilder& b) { b.Layers("f", FullSpec(), 1).Layers("k", MambaSpec(), 1); },
                   {1 << 17, 1 << 17},
                   {1 << 17, 1 << 17}},
        BlocksCase{"states_that_align",
                   [](CaseBuilder& b) {
                     b.Layers("f", FullSpec(), 1);
                     b.Layers("k",
                              With(MambaSpec(),
                                   [](EngineSpec& s) { s.mamba_cache_mode = MambaCacheMode::kAlign; }),
                              1);
                   },
                   {1 << 17, 16},
                   {1 << 17, 16}},
        BlocksCase{"mamba_is_not_sharded",
                   [](CaseBuilder& b) {
                     b.Layers("m", MlaSpec(), 1).Layers("k", MambaSpec(1024), 1);
                     b.config().dcp = 4;
                     b.config().block_size = 64;
                   },
                   {1 << 17, 1 << 17},
                   {1 << 17, 1 << 17}}),
    [](const auto& param) { return param.param.name; });

TEST(Precision, MixedCachesAreZeroed) {
  CaseBuilder mixed;
  mixed.Layers("f", With(FullSpec(), [](EngineSpec& s) { s.dtype = ElementType::kUint8; }), 1)
      .Layers("g", FullSpec(), 1);
  CaseBuilder same;
  same.Layers("f", FullSpec(), 1).Layers("s", SlidingSpec(), 1);
  CaseBuilder states;
  states.Layers("k", MambaSpec(), 1);
  for (const EngineVersion version : testing::kBothVersions) {
    EXPECT_TRUE(PlanEngine(mixed.engine_case(), version).has_mixed_precision_kv_cache);
    EXPECT_TRUE(PlanEngine(mixed.engine_case(), version).needs_kv_cache_zeroing);
    EXPECT_FALSE(PlanEngine(same.engine_case(), version).needs_kv_cache_zeroing);
    EXPECT_TRUE(PlanEngine(states.engine_case(), version).needs_kv_cache_zeroing);
    EXPECT_FALSE(PlanEngine(states.engine_case(), version).has_mixed_precision_kv_cache);
  }
}

TEST(Input, AnEncoderOnlyLayerIsNotRegistered) {
  CaseBuilder builder;
  builder.Layers("e", With(FullSpec(), [](EngineSpec& s) { s.kind = SpecKind::kEncoderOnly; }), 1);
  const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
  ASSERT_TRUE(plan.failure.has_value());
  EXPECT_EQ(plan.failure->kind, EngineErrorKind::kValueError);
  EXPECT_FALSE(plan.is_type_uniform.has_value());
}

TEST(Input, SlidingLayersKeepTokensForSeveralMtpModules) {
  for (const auto& [layers, tokens, extra] : {std::tuple{3, 3, 2}, {1, 3, 0}, {3, 1, 0}}) {
    CaseBuilder builder;
    builder.Layers("s", SlidingSpec(), 1);
    builder.config().speculative = EngineSpeculative{"mtp", tokens, layers, false};
    for (const EngineVersion version : testing::kBothVersions) {
      const EnginePlan plan = PlanEngine(builder.engine_case(), version);
      EXPECT_EQ(testing::SpecOfGroup(plan, 0).extra_retained_tokens, extra);
    }
    builder.config().num_prefill_lookahead_tokens = 5;
    EXPECT_EQ(testing::SpecOfGroup(PlanEngine(builder.engine_case(), kB), 0).extra_retained_tokens, 4);
  }
}

}  // namespace
}  // namespace kvasir::vllm
