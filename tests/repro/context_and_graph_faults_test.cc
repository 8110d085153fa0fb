// Faults of context parallelism, of windows, and of graphs that are larger than their metadata.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "common/plan/admission.h"
#include "common/plan/verify.h"
#include "planner/core/graphed.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/catalogue_plans.h"
#include "tests/testing/engine_cases.h"

namespace kvasir {
namespace {

using testing::CataloguePlan;
using testing::kGib;

PlanOptions Sharded(std::int64_t interleave) {
  PlanOptions options;
  options.tp = options.dcp = 4;
  options.interleave = interleave;
  options.kv_memory_bytes = {20 * kGib};
  options.contexts = {32768};
  return options;
}

// https://github.com/vllm-project/vllm/pull/40996: each place derived the sharded block anew, and hybrids
// could not be sharded. Here a pool says whether it is: rows are spread over the ranks, states are whole on
// each.
TEST(VllmPull40996, RowsAreShardedAndStatesAreNot) {
  PlanOptions options = Sharded(1);
  options.dcp = 2;
  const Plan plan = CataloguePlan("qwen3.5-27b", "", options).plan;
  ASSERT_EQ(plan.pools.size(), 2U);
  const PoolDemand rows = DemandOf(plan, plan.pools[0]);
  const PoolDemand states = DemandOf(plan, plan.pools[1]);
  EXPECT_EQ(rows.context_ranks, 2);
  EXPECT_EQ(states.context_ranks, 1);
  EXPECT_EQ(BlocksForSequence(rows, 32768), 32768 / (2 * plan.pools[0].block_tokens));
  EXPECT_EQ(BlocksForSequence(states, 32768), BlocksForSequence(states, 1));
}

// https://github.com/vllm-project/vllm/pull/50118: with a prefix hit under context parallelism the report
// counted blocks of one rank's tokens and an assertion ended the engine. Here the block that hits are counted
// in covers all ranks' tokens.
TEST(VllmPull50118, ABlockCoversTheTokensOfAllRanks) {
  for (const std::int64_t dcp : {1, 2, 8}) {
    testing::CaseBuilder builder;
    builder.Layers("m", testing::MlaSpec(), 4);
    builder.config().block_size = 64;
    builder.config().dcp = dcp;
    for (const vllm::EngineVersion version : testing::kBothVersions) {
      const vllm::EnginePlan plan = PlanEngine(builder.engine_case(), version);
      ASSERT_FALSE(plan.failure.has_value());
      EXPECT_EQ(plan.scheduler_block_size, 64 * dcp);
      EXPECT_EQ(plan.per_worker[0].needed_bytes,
                8192 / (64 * dcp) * *plan.per_worker[0].pool_bytes_per_block);
    }
  }
}

// https://github.com/vllm-project/vllm/pull/26696: tokens could be spread one by one only, where a transfer
// of prefilled blocks needs whole blocks on a rank. Here the interleave is an input: 1 unless it is said, at
// most a block, and one that no block is a multiple of is refused by name.
TEST(VllmPull26696, TheInterleaveIsAnInput) {
  EXPECT_EQ(PlanOptions{}.interleave, 1);
  for (const std::int64_t interleave : {1, 16, 64}) {
    const Plan plan = CataloguePlan("deepseek-v2-lite", "", Sharded(interleave)).plan;
    EXPECT_EQ(plan.topology.interleave, interleave);
    EXPECT_EQ(plan.pools[0].block_tokens % interleave, 0);
  }
  const PlanOutcome outcome = testing::CatalogueOutcome("deepseek-v2-lite", "", Sharded(7));
  ASSERT_TRUE(std::holds_alternative<Refusals>(outcome));
  EXPECT_EQ(RuleName(std::get<Refusals>(outcome).refusals[0].rule), "INTERLEAVE_NOT_DIVIDING_BLOCK");
}

// https://github.com/xLLM-AI/xllm/pull/1939: a graph of 112 rows ran with metadata for 100 sequences. Here
// the largest graph of every pass holds max_requests exactly, every batch has a graph that holds it, and a
// plan with a larger one is no plan.
TEST(XllmPull1939, NoGraphIsLargerThanTheBatch) {
  PlanOptions options = Sharded(1);
  options.max_requests = 100;
  Plan plan = CataloguePlan("kimi-linear-48b", "", options).plan;
  for (std::int64_t batch = 1; batch <= 100; ++batch) {
    const auto holds = [&](const PlanGraph& graph) {
      return graph.pass == Pass::kTargetDecode && graph.bucket >= batch;
    };
    EXPECT_TRUE(std::any_of(plan.graphs.begin(), plan.graphs.end(), holds)) << batch;
  }
  EXPECT_EQ(BucketsUpTo(100).back(), 100);
  ASSERT_TRUE(VerifyPlan(plan).ok());
  ASSERT_FALSE(plan.graphs.empty());
  EXPECT_EQ(plan.graphs.back().bucket, 100);
  plan.graphs.back().bucket = 112;
  EXPECT_FALSE(VerifyPlan(plan).ok());
}

// https://github.com/lightseekorg/tokenspeed/pull/613: tables for capture were sized for a window less one
// token, and capture failed. Here a window's blocks hold the window with the rows of the pass, wherever in a
// block it begins.
TEST(TokenspeedPull613, AWindowsBlocksHoldItAtEveryAlignment) {
  for (const std::int64_t block_tokens : {16, 64}) {
    for (const std::int64_t rows : {1, 4, 8}) {
      PoolDemand demand;
      demand.lifetime = {.kind = LifetimeKind::kBoundedWindow, .window = 128, .copies = 0};
      demand.block_tokens = block_tokens;
      demand.block_rows = rows;
      const std::int64_t blocks = BlocksForSequence(demand, 32768);
      std::int64_t most = 0;
      for (std::int64_t last = 1000; last < 1000 + block_tokens; ++last) {
        const std::int64_t first = last - (128 + rows - 1) + 1;
        most = std::max(most, last / block_tokens - first / block_tokens + 1);
      }
      EXPECT_EQ(blocks, most) << block_tokens << " " << rows;
    }
  }
}

}  // namespace
}  // namespace kvasir
