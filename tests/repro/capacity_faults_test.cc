// Faults of estimates: what a sequence takes was counted over the wrong layers, heads, dtype or lengths. Here
// each layer counts once, with its own row, on its rank, for as many tokens as it keeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "planner/core/capacity.h"
#include "planner/request/engine_budget.h"
#include "planner/request/gpu_table.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/catalogue_plans.h"
#include "tests/testing/engine_cases.h"
#include "tests/testing/native_plan.h"

namespace kvasir {
namespace {

using testing::AskedEngine;
using testing::AskEngine;
using testing::CataloguePlan;
using testing::kGib;

PlanOptions Options(std::int64_t gib, std::int64_t tp = 1) {
  PlanOptions options;
  options.tp = tp;
  options.kv_memory_bytes = {gib * kGib};
  return options;
}

// https://github.com/ai-dynamo/aiconfigurator/pull/1201: the bytes of one token were taken as the rate of
// all, though windows stop growing. Here the longest sequence is the inverse of the demand, to the token.
TEST(AiconfiguratorPull1201, CapacityIsAnInverseAndNoRate) {
  PlanOptions options = Options(4);
  options.contexts = {8192};
  const Plan plan = CataloguePlan("gemma-3-27b", "", options).plan;
  const std::int64_t first = CapacityAt(plan, 16).bytes_per_request.value();
  const std::int64_t many = CapacityAt(plan, 65536).bytes_per_request.value();
  EXPECT_LT(many * 3, first * (65536 / 16)) << "52 of 62 layers keep 1,024 tokens";
  const std::int64_t longest = LongestContext(plan, 1, 131072);
  ASSERT_LT(longest, 131072);
  EXPECT_EQ(CapacityAt(plan, longest).requests, 1);
  EXPECT_EQ(CapacityAt(plan, longest + 1).requests, 0);
}

// https://github.com/inference-sim/inference-sim/issues/1558: rows were counted for all of a hybrid's layers,
// eight times too many. Here its 6 attention layers have rows, and a sequence has one state a Mamba layer.
TEST(InferenceSimIssue1558, OnlyAttentionLayersHaveRows) {
  const Plan plan = CataloguePlan("nemotron-3-nano-30b", "", Options(10)).plan;
  ASSERT_EQ(plan.pools.size(), 2U);
  EXPECT_EQ(plan.pools[0].groups[0].layers.size(), 6U);
  EXPECT_EQ(plan.pools[1].groups[0].layers.size(), 23U);
  EXPECT_EQ(plan.pools[0].block_bytes, plan.pools[0].block_tokens * 6 * 2 * (128 + 128) * 2);
  const std::int64_t grown =
      CapacityAt(plan, 65536).bytes_per_request.value() - CapacityAt(plan, 32768).bytes_per_request.value();
  EXPECT_EQ(grown, 32768 / plan.pools[0].block_tokens * plan.pools[0].stride_bytes) << "states stay";
}

// https://github.com/llm-d-incubation/llm-d-planner/pull/205: a planner that did not know the cache's dtype
// was half of the real figure with fp8, and its constants for activations were single numbers. Here the dtype
// doubles the blocks, and what is not known beforehand is a range.
TEST(LlmdPlannerPull205, TheCacheDtypeCountsAndTheBudgetIsARange) {
  const std::string command = "vllm serve google/gemma-2-27b --kv-cache-memory-bytes 20G";
  AskedEngine plain = AskEngine(command);
  const AskedEngine fp8 = AskEngine(command + " --kv-cache-dtype fp8");
  EXPECT_EQ(plain.answer.least.num_blocks, 7123);
  EXPECT_EQ(fp8.answer.least.num_blocks, 2 * 7123);
  plain.launch.device = FindGpu("h100").value();
  const EngineBudget budget = BudgetOf(plain.launch, plain.question.settings, {}, {});
  EXPECT_LT(budget.cache.least, budget.cache.most);
}

// https://github.com/kaito-project/kaito/issues/2132: a chosen length of 1,048,576 needed 22.5 GiB
// where 17.39 were, and the engine refused it at start. Here need, shortage and the longest length are told
// before, and auto fit takes that length.
TEST(KaitoIssue2132, ALengthThatIsTooLongIsToldWithTheOneThatFits) {
  vllm::EngineSpec latent = testing::MlaSpec(320);  // 36 layers of 256 + 64
  testing::CaseBuilder builder(1048576, 1739 * kGib / 100);
  builder.Layers("m", latent, 36);
  const vllm::EnginePlan plan = PlanEngine(builder.engine_case(), vllm::EngineVersion::k2026_11);
  ASSERT_TRUE(plan.failure.has_value());
  EXPECT_EQ(plan.failure->kind, vllm::EngineErrorKind::kValueError);
  EXPECT_EQ(plan.per_worker[0].needed_bytes, 45 * kGib / 2);
  const std::int64_t longest = *plan.per_worker[0].estimated_max_model_len;
  EXPECT_NEAR(static_cast<double>(longest), 810208, 810208 * 0.0005) << "17.39 is rounded";
  builder.config().auto_fit = true;
  const vllm::EnginePlan fitted = PlanEngine(builder.engine_case(), vllm::EngineVersion::k2026_11);
  ASSERT_FALSE(fitted.failure.has_value());
  EXPECT_EQ(fitted.max_model_len, longest);
}

// https://github.com/sgl-project/sglang/pull/18039: windowed layers were counted twice, with the full layers'
// heads. Here each of the 48 layers is in one pool, with the rows of its own heads.
TEST(SglangPull18039, FullAndWindowedLayersHaveTheirOwnRows) {
  const Plan plan = CataloguePlan("mimo-v2-flash", "", Options(20, 4)).plan;
  ASSERT_EQ(plan.pools.size(), 2U);
  const auto& full = plan.pools[0].groups[0].layers;
  const auto& windowed = plan.pools[1].groups[0].layers;
  EXPECT_EQ(full.size(), 9U);
  EXPECT_EQ(windowed.size(), 39U);
  EXPECT_EQ(RowBytes(full[0].layout), 1 * (192 + 128) * 2);
  EXPECT_EQ(RowBytes(windowed[0].layout), 2 * (192 + 128) * 2);
}

// https://github.com/sgl-project/sglang/pull/11309: the indexer's keys were left out, 54.52 GB reported where
// 65.49 were used. Here 975,424 tokens take 43.67 GiB, as they do there since.
TEST(SglangPull11309, TheIndexersKeysAreCounted) {
  const AskedEngine asked = AskEngine(
      "vllm serve deepseek-ai/DeepSeek-V3.2 -tp 8 --kv-cache-memory-bytes 40G --kv-cache-dtype fp8");
  const std::int64_t block = *asked.answer.plan.per_worker[0].pool_bytes_per_block;
  EXPECT_EQ(block, 64 * 61 * (656 + 132));
  const std::int64_t bytes = 975424 / 64 * block;
  EXPECT_NEAR(static_cast<double>(bytes) / static_cast<double>(kGib), 43.67, 0.005);
}

// https://github.com/NVIDIA/TensorRT-LLM/issues/15178: on memory that CPU and GPU share, a hybrid's estimate
// fell to 0 tokens. Here the device's budget admits sequences, and memory that is too small is said to be,
// with what it lacks.
TEST(TensorRtIssue15178, AHybridOnUnifiedMemoryHasACapacity) {
  AskedEngine asked = AskEngine(
      "vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 --kv-cache-memory-bytes 20G "
      "--max-model-len 131072");
  asked.launch.device = FindGpu("gb10").value();
  const EngineBudget budget = BudgetOf(asked.launch, asked.question.settings, {}, {});
  ASSERT_GT(budget.cache.least, 0);
  PlanOptions options;
  options.kv_memory_bytes = {budget.cache.least};
  const Planned planned = CataloguePlan("nemotron-3-nano-30b", "", options);
  EXPECT_GT(planned.report.capacity.back().requests, 0);
  options.kv_memory_bytes = {16 << 20};
  const PlanOutcome outcome = testing::CatalogueOutcome("nemotron-3-nano-30b", "", options);
  ASSERT_TRUE(std::holds_alternative<DoesNotFit>(outcome));
  EXPECT_GT(std::get<DoesNotFit>(outcome).shortfall.value(), 0);
}

// https://github.com/InternLM/lmdeploy/issues/4366: blocks of a latent cache were counted wrongly, and 32 GB
// held 4,928 tokens. Here a token takes one latent row a layer, whatever the heads.
TEST(LmdeployIssue4366, ALatentCacheHoldsWhatItsRowsTake) {
  LatentCache latent = testing::NativeLatent();
  std::int64_t before = 0;
  for (const std::int64_t heads : {20, 160}) {
    latent.heads = heads;
    const Plan plan = testing::NativePlan({{47, latent}});
    const std::int64_t longest = LongestContext(plan, 1, std::int64_t{1} << 22);
    EXPECT_GE(longest, 64 * kGib / (47 * 576 * 2) * 99 / 100);
    EXPECT_TRUE(before == 0 || before == longest);
    before = longest;
  }
}

// https://github.com/huggingface/transformers/pull/48566: the pool was sized with the heads of all ranks, 814
// blocks where 3,258 fit. Here a rank has its own heads and four times the blocks.
TEST(TransformersPull48566, ARankIsSizedWithItsOwnHeads) {
  const Plan one = CataloguePlan("qwen3-32b", "", Options(20)).plan;
  const Plan four = CataloguePlan("qwen3-32b", "", Options(20, 4)).plan;
  EXPECT_EQ(one.pools[0].groups[0].layers[0].layout.heads, 8);
  EXPECT_EQ(four.pools[0].groups[0].layers[0].layout.heads, 2);
  EXPECT_EQ(four.parents, 4 * one.parents);
}

// https://github.com/vllm-project/vllm/issues/44376: with a connector the check before start took latent rows
// for keys and values of all heads, 6.66 GiB for 30,000 tokens. Here the connector changes nothing: a stage
// of 31 layers needs 1 GiB.
TEST(VllmIssue44376, AConnectorDoesNotChangeTheNeed) {
  const std::string command =
      "vllm serve deepseek-ai/DeepSeek-V3 -tp 8 -pp 2 --max-model-len 30000 --kv-cache-memory-bytes 8G";
  const AskedEngine plain = AskEngine(command);
  const AskedEngine connected =
      AskEngine(command +
                " --kv-transfer-config '{\"kv_connector\":\"MooncakeStoreConnector\","
                "\"kv_role\":\"kv_both\"}'");
  EXPECT_TRUE(connected.question.engine_case.config.kv_connector);
  EXPECT_EQ(connected.answer.needed_bytes(), 30000 / 16 * 31 * 16 * 576 * 2);
  EXPECT_EQ(connected.answer.needed_bytes(), plain.answer.needed_bytes());
}

// https://github.com/vllm-project/vllm/issues/18121: there was no way to say the cache's size. Here bytes or
// blocks are inputs, and what is planned is exactly that.
TEST(VllmIssue18121, TheCachesSizeCanBeSaid) {
  const std::string command = "vllm serve Qwen/Qwen3-32B --max-model-len 8192 --kv-cache-memory-bytes 8G";
  const AskedEngine bytes = AskEngine(command);
  EXPECT_EQ(bytes.answer.least.num_blocks, 8 * kGib / (64 * 16 * 8 * 256 * 2));
  const AskedEngine blocks = AskEngine(command + " --num-gpu-blocks-override 1000");
  EXPECT_EQ(blocks.answer.least.num_blocks, 1000);
  const Plan native = CataloguePlan("qwen3-32b", "", Options(20)).plan;
  EXPECT_EQ(native.arena_bytes.value(), 20 * kGib);
}

}  // namespace
}  // namespace kvasir
