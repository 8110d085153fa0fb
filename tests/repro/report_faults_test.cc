// Faults of figures that cannot be understood, or that admission does not keep. Here the numbers behind a
// printed figure are in the answer, and what is reported is what is admitted.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "planner/core/capacity.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/catalogue_plans.h"
#include "tests/testing/engine_cases.h"

namespace kvasir {
namespace {

using testing::AskedEngine;
using testing::AskEngine;
using testing::kGib;

// https://github.com/vllm-project/vllm/issues/54662: the start's line has tokens alone, from which neither
// the pool nor a request's blocks can be recovered. Here blocks, groups and blocks of a request stand beside
// it.
TEST(VllmIssue54662, TheNumbersBehindTheLineAreInTheAnswer) {
  const AskedEngine asked = AskEngine(
      "vllm serve google/gemma-3-27b-it --kv-cache-memory-bytes 20G --max-model-len 131072 "
      "--max-num-batched-tokens 8192");
  ASSERT_TRUE(asked.answer.rule.has_value());
  const CapacityRule& rule = *asked.answer.rule;
  EXPECT_EQ(rule.groups, 7);
  const std::int64_t windows = rule.blocks_per_request - 131072 / 16;
  EXPECT_GT(windows, 0);
  EXPECT_EQ(windows % 6, 0) << "six groups with the same window";
  const std::int64_t block = *asked.answer.plan.per_worker[0].pool_bytes_per_block;
  EXPECT_EQ(asked.answer.least.num_blocks, 20 * kGib / block);
  const double concurrency =
      static_cast<double>(asked.answer.least.num_blocks) / static_cast<double>(rule.blocks_per_request);
  EXPECT_EQ(asked.answer.least.concurrency, concurrency);
  EXPECT_EQ(asked.answer.least.tokens, static_cast<std::int64_t>(concurrency * 131072));
}

// https://github.com/vllm-project/vllm/issues/43308: the printed tokens grew tenfold from 0.20.0 to 0.21.0 on
// the same memory. Here both lines are foretold, and blocks and concurrency are seen to be the same.
TEST(VllmIssue43308, AReleaseChangesTheFigureAndNotTheMemory) {
  const std::string command =
      "vllm serve google/gemma-4-31B --kv-cache-memory-bytes 30G --max-model-len 131072";
  const AskedEngine before = AskEngine(command, "0.20.0");
  const AskedEngine after = AskEngine(command, "0.21.0");
  EXPECT_EQ(before.answer.least.num_blocks, after.answer.least.num_blocks);
  EXPECT_EQ(before.answer.least.concurrency, after.answer.least.concurrency);
  EXPECT_EQ(before.answer.least.tokens, 12288 / 6 * 16);
  EXPECT_EQ(after.answer.least.tokens, 230713);
}

// https://github.com/vllm-project/vllm/issues/40002: the report promised lengths at which requests hung. Here
// the longest length is admitted and one token more is not, by the arithmetic that admission uses; a context
// beyond it is no plan.
TEST(VllmIssue40002, TheReportedLengthIsAdmittedAndNoLonger) {
  PlanOptions options;
  options.tp = 2;
  options.kv_memory_bytes = {4 * kGib};
  options.contexts = {8192};
  const Planned planned = testing::CataloguePlan("gemma-4-31b", "", options);
  const std::int64_t longest = planned.report.longest_context_tokens;
  ASSERT_FALSE(planned.report.longest_is_model_limit);
  EXPECT_EQ(CapacityAt(planned.plan, longest).requests, 1);
  EXPECT_EQ(CapacityAt(planned.plan, longest + 1).requests, 0);
  options.contexts = {262144};
  const PlanOutcome outcome = testing::CatalogueOutcome("gemma-4-31b", "", options);
  ASSERT_TRUE(std::holds_alternative<DoesNotFit>(outcome));
  EXPECT_GT(std::get<DoesNotFit>(outcome).longest_context_tokens, 0);
}

// https://github.com/vllm-project/vllm/issues/51163: a metric shows blocks of 4 tokens where 256 were asked
// for, and blocks times that is not the printed capacity. Here every group has its own block, and the three
// figures have names of their own.
TEST(VllmIssue51163, TheLeastBlockIsNotTheBlockThatWasAskedFor) {
  const AskedEngine asked = AskEngine(
      "vllm serve deepseek-ai/DeepSeek-V4-Flash --kv-cache-memory-bytes 60G --block-size 256 "
      "--kv-cache-dtype fp8 --max-num-batched-tokens 8192");
  std::multiset<std::int64_t> blocks;
  for (const vllm::EngineGroup& group : asked.answer.plan.groups) {
    blocks.insert(std::get<vllm::UniformTypeSpecs>(group.spec).block_size);
  }
  EXPECT_EQ(blocks, (std::multiset<std::int64_t>{4, 8, 64, 64, 256}));
  ASSERT_TRUE(asked.answer.rule.has_value());
  EXPECT_EQ(asked.answer.rule->least_block, 4);
  EXPECT_EQ(asked.answer.plan.scheduler_block_size, 256);
  EXPECT_EQ(asked.answer.least.tokens, asked.answer.plan.kv_cache_size_tokens);
  EXPECT_GT(asked.answer.least.tokens, 4 * asked.answer.least.num_blocks);
}

// https://github.com/vllm-project/vllm-ascend/issues/17074: a group with blocks of 4 tokens takes so many
// block numbers of the shared pool that requests beyond 69,000 tokens waited forever. Here the demand of all
// groups is added before start, and a length that the pool cannot hold is refused with the one that it can.
TEST(AscendIssue17074, ADemandBeyondThePoolIsRefusedAtStart) {
  vllm::EngineSpec full = testing::MlaSpec(512);
  full.block_size = 640;
  vllm::EngineSpec small = testing::SlidingSpec(7168, 1, 640 * 512 * 2 / 16);
  small.block_size = 4;  // 640 * 512 * 2 bytes a block, too
  vllm::EngineSpec state = testing::MambaSpec(640 * 512 * 2 / 4);
  testing::CaseBuilder builder(131072, 2000 * std::int64_t{655360} * 2);
  builder.Layers("m", full, 2).Layers("w", small, 2).Layers("k", state, 6);
  builder.config().max_num_batched_tokens = 16;
  const vllm::EnginePlan plan = PlanEngine(builder.engine_case(), vllm::EngineVersion::k2026_11);
  ASSERT_TRUE(plan.failure.has_value());
  EXPECT_EQ(plan.failure->kind, vllm::EngineErrorKind::kValueError);
  EXPECT_EQ(testing::GroupSizes(plan).size(), 5U);
  const std::int64_t pool = *plan.per_worker[0].pool_bytes_per_block;
  // The window's blocks alone are nine times those of the full layers.
  EXPECT_GT(*plan.per_worker[0].needed_bytes, pool * (131072 / 640 + 3 + 7168 / 4));
  EXPECT_LT(*plan.per_worker[0].estimated_max_model_len, 131072);
  EXPECT_GT(*plan.per_worker[0].estimated_max_model_len, 0);
}

}  // namespace
}  // namespace kvasir
