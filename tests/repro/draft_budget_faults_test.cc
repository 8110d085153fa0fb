// Faults of engines that size the target's cache and forget, or count twice, what the draft takes. Here a
// draft's weights are taken from the device before its cache, and its layers stand in the target's arena.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/models/catalogue.h"
#include "common/plan/admission.h"
#include "planner/core/capacity.h"
#include "planner/request/engine_budget.h"
#include "planner/request/gpu_table.h"
#include "planner/request/weight_bytes.h"
#include "tests/testing/catalogue_plans.h"
#include "tests/testing/native_plan.h"

namespace kvasir {
namespace {

using testing::AskedEngine;
using testing::AskEngine;
using testing::CataloguePlan;
using testing::OwnedBy;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

PlanOptions GptOss(std::int64_t draft_tokens = 3) {
  PlanOptions options;
  options.kv_memory_bytes = {20 * kGib};
  options.contexts = {131072};
  options.draft_tokens = draft_tokens;
  return options;
}

bool HasRole(const PlanPool& pool, Role role) {
  return std::any_of(pool.groups.begin(), pool.groups.end(),
                     [&](const PlanGroup& group) { return group.behaviour.role == role; });
}

// https://github.com/sgl-project/sglang/pull/23862: the static share of memory left the draft's weights and
// cache out, and launches ran out of memory. Here the draft's weights are a line of the budget, and its layer
// is planned with the target's.
TEST(SglangPull23862, TheDraftsWeightsAndCacheAreBudgeted) {
  const std::string command =
      "vllm serve meta-llama/Llama-3.1-8B-Instruct --kv-cache-memory-bytes 20G --max-model-len 32768";
  AskedEngine alone = AskEngine(command);
  AskedEngine drafted = AskEngine(command +
                                  " --speculative-config '{\"model\":\"yuhuili/EAGLE3-LLaMA3.1-Instruct-8B\","
                                  "\"method\":\"eagle3\",\"num_speculative_tokens\":3}'");
  alone.launch.device = drafted.launch.device = FindGpu("h100").value();
  const EngineBudget without = BudgetOf(alone.launch, alone.question.settings, {}, {});
  const EngineBudget with = BudgetOf(drafted.launch, drafted.question.settings, {}, {});
  const auto line = std::find_if(with.taken.begin(), with.taken.end(),
                                 [](const BudgetLine& taken) { return taken.what == "draft weights"; });
  ASSERT_NE(line, with.taken.end());
  EXPECT_GT(line->bytes.least, 100 << 20);
  EXPECT_LE(with.cache.most, without.cache.most - line->bytes.least);
  EXPECT_EQ(alone.question.engine_case.layers.size(), 32U);
  EXPECT_EQ(drafted.question.engine_case.layers.size(), 33U);
  EXPECT_LT(drafted.answer.least.tokens, alone.answer.least.tokens) << "of the same memory";
}

// https://github.com/sgl-project/sglang/issues/36452: the draft's copies of embedding and head were freed
// only after the cache was sized, which shrank the pool. Here a draft that shares the target's tables is
// charged for them at most in the upper end of the range.
TEST(SglangIssue36452, SharedTablesAreNotChargedForCertain) {
  ModelDescription draft = FindInCatalogue("kimi-k3-dspark").value();
  ASSERT_TRUE(draft.draft.has_value());
  draft.draft->own_embedding = draft.draft->own_head = false;
  const BytesRange shared = WeightBytesOf(draft, {}, {});
  draft.draft->own_embedding = draft.draft->own_head = true;
  const BytesRange own = WeightBytesOf(draft, {}, {});
  const std::int64_t tables = 2 * draft.vocab * draft.hidden * 2;
  EXPECT_EQ(shared.most, own.most);
  EXPECT_GE(own.least - shared.least, tables / 10 * 9);
}

// https://github.com/sgl-project/sglang/pull/28219: with sliding windows the draft's cache was not reserved.
// Here its one layer of the target's full rows takes an eighteenth of what the 18 full layers take.
TEST(SglangPull28219, AWindowedTargetReservesItsDraftsCache) {
  const Plan plan = CataloguePlan("gpt-oss-120b", "gpt-oss-120b-eagle3", GptOss()).plan;
  const std::int64_t target = OwnedBy(plan, "payload.target.attention");
  EXPECT_GT(target, 0);
  EXPECT_EQ(OwnedBy(plan, "payload.draft.") * 18, target);
  EXPECT_EQ(OwnedBy(plan, ""), plan.arena_bytes.value());
  EXPECT_LE(plan.arena_bytes.value(), 20 * kGib);
}

// https://github.com/sgl-project/sglang/pull/17630: the draft's pool was smaller than the target's full pool,
// whose block numbers it was indexed with, and writes left it. Here the draft's pages lie inside the very
// blocks that the target's full layers have.
TEST(SglangPull17630, TheDraftIsIndexedByBlocksThatItHas) {
  const Plan plan = CataloguePlan("gpt-oss-120b", "gpt-oss-120b-eagle3", GptOss()).plan;
  int pools = 0;
  for (const PlanPool& pool : plan.pools) {
    if (!HasRole(pool, Role::kDraft)) continue;
    ++pools;
    EXPECT_TRUE(HasRole(pool, Role::kTarget));
    EXPECT_EQ(pool.lifetime.kind, LifetimeKind::kPerToken);
    for (const PlanGroup& group : pool.groups) {
      for (const PlanLayer& layer : group.layers) {
        EXPECT_EQ(layer.page_bytes, pool.block_tokens * RowBytes(layer.layout)) << layer.name;
        EXPECT_LE(layer.offset_bytes + layer.page_bytes, pool.stride_bytes) << layer.name;
      }
    }
  }
  EXPECT_EQ(pools, 1);
}

// https://github.com/NVIDIA/TensorRT-LLM/pull/12188: target and draft each claimed the whole budget, and
// every pipeline stage counted the draft. Here one arena holds both, and the draft's layers are the last
// stage's.
TEST(TensorRtPull12188, OneBudgetHoldsBothAndTheLastStageHasTheDraft) {
  const Planned both = CataloguePlan("gpt-oss-120b", "gpt-oss-120b-eagle3", GptOss());
  PlanOptions options = GptOss(0);
  const Planned alone = CataloguePlan("gpt-oss-120b", "", options);
  EXPECT_LE(both.plan.arena_bytes.value(), 20 * kGib);
  EXPECT_GT(both.report.capacity.front().bytes_per_request.value(),
            alone.report.capacity.front().bytes_per_request.value());
  const AskedEngine asked = AskEngine(
      "vllm serve meta-llama/Llama-3.1-8B-Instruct -pp 2 --kv-cache-memory-bytes 20G "
      "--max-model-len 32768 --speculative-config '{\"model\":"
      "\"yuhuili/EAGLE3-LLaMA3.1-Instruct-8B\",\"method\":\"eagle3\",\"num_speculative_tokens\":3}'");
  const std::vector<vllm::EngineWorker>& workers = asked.question.engine_case.workers;
  ASSERT_EQ(workers.size(), 2U);
  ASSERT_TRUE(workers[0].layers.has_value() && workers[1].layers.has_value());
  EXPECT_EQ(workers[0].layers->size(), 16U);
  EXPECT_EQ(workers[1].layers->size(), 17U);
  EXPECT_EQ(workers[1].layers->back(), 32) << "registered after the target's 32";
}

// https://github.com/NVIDIA/TensorRT-LLM/pull/13619: the capacity that users saw did not hold the tokens that
// drafting needs beyond the sequence, and requests ran out of pages. Here a window's blocks hold the drafted
// rows, and what is reported is admitted with them, to the token.
TEST(TensorRtPull13619, DraftedRowsAreInsideTheReportedCapacity) {
  PlanOptions options = GptOss(15);
  options.kv_memory_bytes = {2 * kGib};
  options.contexts = {8192};
  const Plan plan = CataloguePlan("gpt-oss-120b", "gpt-oss-120b-eagle3", options).plan;
  for (const PlanPool& pool : plan.pools) {
    if (pool.lifetime.kind != LifetimeKind::kBoundedWindow) continue;
    PoolDemand demand = DemandOf(plan, pool);
    EXPECT_EQ(demand.block_rows, 16);
    const std::int64_t drafted = BlocksForSequence(demand, 8192);
    EXPECT_GE((drafted - 1) * pool.block_tokens, 128 + 15 - 1);
    demand.block_rows = 1;
    EXPECT_LT(BlocksForSequence(demand, 8192), drafted);
  }
  const std::int64_t longest = LongestContext(plan, 1, 131072);
  ASSERT_GT(longest, 8192);
  ASSERT_LT(longest, 131072);
  EXPECT_EQ(CapacityAt(plan, longest).requests, 1);
  EXPECT_EQ(CapacityAt(plan, longest + 1).requests, 0);
}

// https://github.com/vllm-project/vllm-ascend/pull/15960: the draft's large page was charged to each of the
// target's layers, and the block that the user asked for shrank in silence from 768 to 128 tokens. Here the
// block stays, and a block has the bytes of its 24 + 5 pages.
TEST(AscendPull15960, TheUsersBlockStaysAndEachLayerCostsItsOwnPage) {
  PlanOptions options;
  options.tp = options.dcp = 8;
  options.interleave = 768;
  options.kv_memory_bytes = {47 * kGib};
  options.contexts = {131072};
  options.draft_tokens = 3;
  options.block_tokens = 768;
  const Plan plan = CataloguePlan("kimi-k3", "kimi-k3-dspark-gqa", options).plan;
  ASSERT_EQ(plan.pools.size(), 2U);
  const PlanPool& tokens = plan.pools[0];
  EXPECT_EQ(tokens.block_tokens, 768);
  std::multiset<std::int64_t> pages;
  for (const PlanGroup& group : tokens.groups) {
    for (const PlanLayer& layer : group.layers) pages.insert(layer.page_bytes);
  }
  EXPECT_EQ(pages.count(768 * 1152), 24U);
  EXPECT_EQ(pages.count(768 * 4096), 5U);
  EXPECT_EQ(tokens.block_bytes, 768 * (24 * 1152 + 5 * 4096));
}

// https://github.com/vllm-project/vllm-ascend/pull/16147: states were padded to the latent page alone, and
// the larger page of a grouped-query draft overlapped them. Here no two pages of a block overlap, and the
// engine's state pages are as large as the largest page that shares their memory.
TEST(AscendPull16147, PaddingCoversEveryPageThatSharesTheMemory) {
  PlanOptions options;
  options.tp = options.dcp = 8;
  options.kv_memory_bytes = {47 * kGib};
  options.contexts = {131072};
  options.draft_tokens = 3;
  const Plan plan = CataloguePlan("kimi-k3", "kimi-k3-dspark-gqa", options).plan;
  for (const PlanPool& pool : plan.pools) {
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> pages(
        static_cast<std::size_t>(pool.parts));
    for (const PlanGroup& group : pool.groups) {
      for (const PlanLayer& layer : group.layers) {
        pages[static_cast<std::size_t>(layer.part)].emplace_back(layer.offset_bytes,
                                                                 layer.offset_bytes + layer.page_bytes);
      }
    }
    for (auto& part : pages) {
      std::sort(part.begin(), part.end());
      for (std::size_t i = 1; i < part.size(); ++i) EXPECT_LE(part[i - 1].second, part[i].first) << pool.name;
      EXPECT_LE(part.back().second, pool.stride_bytes) << pool.name;
    }
  }
  const AskedEngine asked = AskEngine(
      "vllm serve moonshotai/Kimi-K3 -tp 8 -dcp 8 --kv-cache-memory-bytes 40G --max-model-len 131072 "
      "--speculative-config '{\"model\":\"SpecForge/kimi-k3-dspark\",\"method\":\"dspark\","
      "\"num_speculative_tokens\":3}'");
  ASSERT_FALSE(asked.answer.plan.failure.has_value()) << asked.answer.plan.failure->message;
  std::set<std::int64_t> bytes;
  for (const vllm::EngineGroup& group : asked.answer.plan.groups) {
    const auto* const spec = std::get_if<std::int32_t>(&group.spec);
    ASSERT_NE(spec, nullptr);
    bytes.insert(*PageBytes(asked.answer.plan.specs[static_cast<std::size_t>(*spec)]));
  }
  EXPECT_EQ(bytes.size(), 1U);
}

// https://github.com/vllm-project/vllm/pull/53499: a draft layer of large rows kept blocks of 16 tokens, each
// billed as a whole page of the pool. Here its page holds as many tokens as the target's, and only its rows
// are billed.
TEST(VllmPull53499, ADraftOfLargerRowsIsBilledByItsRows) {
  const KeyValueCache target{.heads = 16, .kv_heads = 1, .key_dim = 288, .value_dim = 288, .window = 0};
  const KeyValueCache draft{.heads = 16, .kv_heads = 8, .key_dim = 128, .value_dim = 128, .window = 0};
  const Plan plan = testing::NativePlan({{16, target}, {48, testing::NativeState()}}, {{5, draft}});
  ASSERT_EQ(plan.pools.size(), 2U);
  EXPECT_EQ(plan.pools[0].block_bytes, plan.pools[0].block_tokens * (16 * 1152 + 5 * 4096));
  EXPECT_EQ(OwnedBy(plan, "payload.draft.") * 16 * 1152,
            OwnedBy(plan, "payload.target.attention") * 5 * 4096);
}

}  // namespace
}  // namespace kvasir
