// Where each page lies, for each shape of pool and each layout.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/engine_cases.h"

namespace kvasir::vllm {

// Outside the unnamed namespace, where argument-dependent look-up finds it.
static void PrintTo(const EngineTensor& tensor, std::ostream* out) {
  *out << "size " << tensor.size << " offset " << tensor.offset << " block " << tensor.block_stride
       << " layer " << tensor.layer_stride << " of";
  for (const std::int32_t layer : tensor.layers) *out << " " << layer;
}

namespace {

using testing::CaseBuilder;
using testing::FullSpec;
using testing::MambaSpec;
using testing::MlaSpec;
using testing::SlidingMlaSpec;
using testing::SlidingSpec;

constexpr auto kA = EngineVersion::k2026_08;
constexpr auto kB = EngineVersion::k2026_11;
constexpr std::int64_t kMib = std::int64_t{1} << 20;
constexpr std::int64_t kPage = 65536;  // of FullSpec and SlidingSpec

EngineSpec With(EngineSpec spec, const std::function<void(EngineSpec&)>& change) {
  change(spec);
  return spec;
}

// The one worker's plan.
EngineWorkerPlan Planned(CaseBuilder& builder, EngineVersion version) {
  EnginePlan plan = PlanEngine(builder.engine_case(), version);
  EXPECT_FALSE(plan.failure.has_value()) << (plan.failure.has_value() ? plan.failure->message : "");
  return plan.workers.empty() ? EngineWorkerPlan{} : plan.workers[0];
}

using Tensors = std::vector<EngineTensor>;

TEST(Tensors202608, TheIthLayersOfAllGroupsShareOne) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(), 2).Layers("s", SlidingSpec(), 3);  // groups 0 1, 2 4, 3
  const EngineWorkerPlan worker = Planned(builder, kA);
  EXPECT_EQ(worker.num_blocks, 512);  // 64 MiB / 64 KiB / 2
  EXPECT_EQ(worker.tensors, (Tensors{{512 * kPage, {0, 2, 3}, 0, 0, 0}, {512 * kPage, {1, 4}, 0, 0, 0}}));
}

TEST(Tensors202608, AWrapperHasOneForEachLayer) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(8), 1).Layers("g", FullSpec(4), 2);
  const EngineWorkerPlan worker = Planned(builder, kA);
  EXPECT_EQ(worker.num_blocks, 512);  // 64 MiB / 128 KiB
  EXPECT_EQ(worker.tensors, (Tensors{{512 * kPage, {0}, 0, 0, 0},
                                     {512 * kPage / 2, {1}, 0, 0, 0},
                                     {512 * kPage / 2, {2}, 0, 0, 0}}));
}

TEST(Tensors202608, PackedGroupsOverlayEachOther) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("m", MlaSpec(576), 1).Layers("i", MlaSpec(288), 1).Layers("s", SlidingMlaSpec(), 1);
  const EngineWorkerPlan worker = Planned(builder, kA);
  EXPECT_EQ(worker.num_blocks, 64 * kMib / 110592);  // the latent group's 72 + 36 KiB
  const std::int64_t size = worker.num_blocks * 110592;
  EXPECT_EQ(worker.tensors, (Tensors{{size, {0, 2}, 0, 110592, 0}, {size, {1}, 73728, 110592, 0}}));
}

TEST(Tensors202608, AConnectorMayAskForPacking) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(), 2).Layers("s", SlidingSpec(), 2);
  builder.config().kv_connector = builder.config().cross_layer_blocks = true;
  const EngineWorkerPlan worker = Planned(builder, kA);
  const std::int64_t size = 512 * 2 * kPage;
  EXPECT_EQ(worker.tensors, (Tensors{{size, {0, 2}, 0, 2 * kPage, 0}, {size, {1, 3}, kPage, 2 * kPage, 0}}));
}

struct LayoutCase {
  KvLayout layout;
  Tensors tensors;  // of 2 full and 2 sliding layers in 512 blocks of 128 KiB
};

void PrintTo(const LayoutCase& c, std::ostream* out) { *out << KvLayoutName(c.layout); }

class Layout : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(Layout, PlacesRuns) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(), 2).Layers("s", SlidingSpec(), 2);
  builder.config().kv_cache_layout = GetParam().layout;
  EXPECT_EQ(Planned(builder, kB).tensors, GetParam().tensors);
}

constexpr std::int64_t kAll = 64 * kMib;
// One head's 16 states of 512 bytes.
constexpr std::int64_t kHead = 16 * 512;

INSTANTIATE_TEST_SUITE_P(
    , Layout,
    ::testing::Values(
        LayoutCase{KvLayout::kLBHNC,
                   {{kAll, {0, 1}, 0, kPage, 512 * kPage}, {kAll, {2, 3}, 0, kPage, 512 * kPage}}},
        LayoutCase{KvLayout::kLBNHC,
                   {{kAll, {0, 1}, 0, kPage, 512 * kPage}, {kAll, {2, 3}, 0, kPage, 512 * kPage}}},
        LayoutCase{KvLayout::kLHBNC,
                   {{kAll, {0, 1}, 0, kHead, 512 * kPage}, {kAll, {2, 3}, 0, kHead, 512 * kPage}}},
        LayoutCase{KvLayout::kBLHNC,
                   {{kAll, {0, 1}, 0, 2 * kPage, kPage}, {kAll, {2, 3}, 0, 2 * kPage, kPage}}},
        LayoutCase{KvLayout::kBLNHC,
                   {{kAll, {0, 1}, 0, 2 * kPage, kPage}, {kAll, {2, 3}, 0, 2 * kPage, kPage}}},
        LayoutCase{KvLayout::kBHLNC,
                   {{kAll, {0, 1}, 0, 2 * kPage, kHead}, {kAll, {2, 3}, 0, 2 * kPage, kHead}}}),
    [](const auto& param) { return std::string(KvLayoutName(param.param.layout)); });

TEST(Tensors202611, RunsOfAWrapperLieOneAfterTheOther) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(8), 1).Layers("g", FullSpec(4), 2).Layers("f", FullSpec(8), 1);
  // 192 KiB a block: 341 blocks.
  const std::int64_t size = 341 * 3 * kPage;
  EXPECT_EQ(Planned(builder, kB).tensors,
            (Tensors{{size, {0, 3}, 0, kPage, 341 * kPage},
                     {size, {1, 2}, 341 * 2 * kPage, kPage / 2, 341 * kPage / 2}}));
  builder.config().kv_cache_layout = KvLayout::kBLHNC;
  EXPECT_EQ(Planned(builder, kB).tensors,
            (Tensors{{size, {0, 3}, 0, 3 * kPage, kPage}, {size, {1, 2}, 2 * kPage, 3 * kPage, kPage / 2}}));
}

TEST(Tensors202611, BlocksAreRoundedUpToTheStrideAlignment) {
  CaseBuilder builder(512, 64 * kMib);
  EngineSpec aligned = FullSpec(5);
  aligned.block_stride_alignment = 65536;
  builder.Layers("f", aligned, 1);  // a page of 40,960 bytes in a block of 65,536
  builder.config().kv_cache_layout = KvLayout::kBLHNC;
  const EngineWorkerPlan worker = Planned(builder, kB);
  EXPECT_EQ(worker.num_blocks, 1024);
  EXPECT_EQ(worker.tensors, (Tensors{{kAll, {0}, 0, 65536, 40960}}));
}

TEST(Tensors202611, LayoutsThatInterleaveHeadsExpressOnePageSizeOnly) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(8), 1).Layers("g", FullSpec(4), 1);
  for (const KvLayout layout : {KvLayout::kLHBNC, KvLayout::kBHLNC}) {
    builder.config().kv_cache_layout = layout;
    const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
    ASSERT_TRUE(plan.failure.has_value()) << KvLayoutName(layout);
    EXPECT_EQ(plan.failure->kind, EngineErrorKind::kValueError);
  }
}

TEST(Tensors202611, APaddedPageNeedsHeadsInside) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", With(FullSpec(), [](EngineSpec& s) { s.page_size_padded = 70000; }), 2);
  builder.config().kv_cache_layout = KvLayout::kBHLNC;
  const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
  ASSERT_TRUE(plan.failure.has_value());
  EXPECT_EQ(plan.failure->message, "layout BHLNC puts 8 heads outside a padded page");
  builder.config().kv_cache_layout = KvLayout::kLBHNC;
  EXPECT_EQ(Planned(builder, kB).tensors.front().block_stride, 70000);
}

TEST(Tensors202611, RecurrentStatesLieInTheLatentLayersSlots) {
  const EngineSpec indexer = With(MlaSpec(132), [](EngineSpec& s) {
    s.dtype = ElementType::kUint8;
    s.tokens_per_state = {4, 1};
  });
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("m", MlaSpec(), 2).Layers("i", indexer, 1).Layers("k", MambaSpec(), 3);
  const EngineWorkerPlan worker = Planned(builder, kB);
  const std::int64_t block = 2 * 73728 + 2112;
  const std::int64_t n = 64 * kMib / block;
  EXPECT_EQ(worker.num_blocks, n);
  const std::int64_t size = n * block;
  EXPECT_EQ(worker.tensors, (Tensors{{size, {0}, 0, 73728, 73728 * n},
                                     {size, {3}, 0, 73728, 73728 * n},  // groups 3 5 and 4
                                     {size, {4}, 0, 73728, 73728 * n},
                                     {size, {1}, 73728 * n, 73728, 73728 * n},
                                     {size, {5}, 73728 * n, 73728, 73728 * n},
                                     {size, {2}, 2 * 73728 * n, 2112, 2112 * n}}));
}

// Workers agree on the smallest number of blocks.
TEST(Workers, AreLoweredToTheSmallest) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(), 2).Worker(32 * kMib);
  const EnginePlan a = PlanEngine(builder.engine_case(), kA);
  ASSERT_EQ(a.workers.size(), 2U);
  EXPECT_EQ(a.workers[0], a.workers[1]);
  EXPECT_EQ(a.workers[0].num_blocks, 256);
  EXPECT_EQ(a.workers[0].tensors[0].size, 256 * kPage);
  const EnginePlan b = PlanEngine(builder.engine_case(), kB);
  EXPECT_EQ(b.workers[0], b.workers[1]);
  EXPECT_EQ(b.workers[0].tensors[0].layer_stride, 256 * kPage);
}

TEST(Workers, OfAStageHoldTheirLayersOnly) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(8), 2).Layers("g", FullSpec(4), 2);
  builder.Stages({0, 1, 4}, {64 * kMib, 64 * kMib});
  const EnginePlan plan = PlanEngine(builder.engine_case(), kA);
  ASSERT_FALSE(plan.failure.has_value());
  EXPECT_EQ(plan.workers[0].groups[0].layers, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(plan.workers[1].groups[0].layers, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(plan.workers[0].tensors.size(), 1U);
  EXPECT_EQ(plan.workers[0].num_blocks, 512) << "stage 1 has 128 KiB a block, stage 0 half of it";
}

TEST(Workers, WithoutLayersAreNotPlanned) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(), 2);
  builder.Stages({0, 2, 2}, {64 * kMib, 64 * kMib});
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_TRUE(plan.failure.has_value());
    EXPECT_EQ(plan.failure->kind, EngineErrorKind::kAssertionError);
  }
}

TEST(Workers, MustAgreeOnALayersSpec) {
  CaseBuilder builder(512, 64 * kMib);
  builder.Layers("f", FullSpec(8), 1).Layers("g", FullSpec(4), 1).Worker(64 * kMib);
  builder.engine_case().workers[1].overrides = {{0, 1}};
  const EnginePlan plan = PlanEngine(builder.engine_case(), kB);
  ASSERT_TRUE(plan.failure.has_value());
  EXPECT_EQ(plan.failure->kind, EngineErrorKind::kAssertionError);
  EXPECT_EQ(plan.failure->message,
            "workers give layer f.0 different specs; give every rank of a stage the same");
}

TEST(Workers, OfAModelWithoutCachesHaveOneBlock) {
  CaseBuilder builder(512, 0);
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    EXPECT_FALSE(plan.failure.has_value());
    EXPECT_TRUE(plan.attention_free);
    EXPECT_EQ(plan.workers[0].num_blocks, 1);
    EXPECT_FALSE(plan.max_concurrency.has_value());
    EXPECT_EQ(plan.scheduler_block_size, 16);
  }
}

}  // namespace
}  // namespace kvasir::vllm
