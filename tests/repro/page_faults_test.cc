// Faults of page sizes, of padding, and of the blocks of pipeline stages.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

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
using testing::NativeFull;
using testing::NativePlan;
using testing::NativeSliding;
using testing::WorstPaddingBasisPoints;

// https://github.com/vllm-project/vllm-ascend/issues/7393: a state of 262,144 bytes and its convolution got a
// page of twice the attention's and the convolution's. Here the engine's state has the page of one block of
// keys and values, and natively a state is padded by little.
TEST(AscendIssue7393, AStateHasThePageOfKeysAndValues) {
  const std::string command = "vllm serve Qwen/Qwen3.5-35B-A3B -tp 8 --kv-cache-memory-bytes 20G";
  const AskedEngine asked = AskEngine(command + " --block-size 512");
  EXPECT_EQ(asked.question.state_bytes, 262144 + 6144);
  ASSERT_TRUE(asked.question.hybrid.has_value());
  EXPECT_EQ(asked.question.hybrid->page_padded, 512 * 1024);
  const AskedEngine least = AskEngine(command);
  EXPECT_EQ(least.question.hybrid->attention_block, 272) << "the first multiple of 16 that holds a state";
  PlanOptions options;
  options.tp = 8;
  options.kv_memory_bytes = {20 * kGib};
  EXPECT_LT(WorstPaddingBasisPoints(CataloguePlan("qwen3.5-35b-a3b", "", options).plan), 300);
}

// https://github.com/vllm-project/vllm-ascend/issues/2761: each layer's tensors were aligned to 2 MiB, up to
// 244 MB of waste. Here all layers of a block lie in one arena, and what no block owns is less than a parent.
TEST(AscendIssue2761, NoLayerIsAlignedByItself) {
  PlanOptions options;
  options.tp = 8;
  options.kv_memory_bytes = {40 * kGib};
  const Plan plan = CataloguePlan("deepseek-v3", "", options).plan;
  EXPECT_EQ(WorstPaddingBasisPoints(plan), 0);
  EXPECT_LT(testing::OwnedBy(plan, "unassigned"), plan.parent_bytes.value());
  EXPECT_LT(40 * kGib - plan.arena_bytes.value(), 2 << 20);
}

// https://github.com/lightseekorg/tokenspeed/pull/909: states were packed as eight ranks need it, and more
// ranks were refused for a padding of 1.268. Here the packing follows the sizes at every degree.
TEST(TokenspeedPull909, PaddingIsSmallAtEveryDegree) {
  for (const std::int64_t tp : {8, 16, 32}) {
    PlanOptions options;
    options.tp = tp;
    options.kv_memory_bytes = {40 * kGib};
    EXPECT_LT(WorstPaddingBasisPoints(CataloguePlan("kimi-k3", "", options).plan), 1340) << tp;
  }
}

// https://github.com/vllm-project/vllm/issues/49696: pages were zeroed with one size for all, though sparse
// rows and indexer keys have pages of 10,496 and 2,112 words. Here each tensor is as long as its own pages.
TEST(VllmIssue49696, EveryTensorHasItsOwnPageSize) {
  const AskedEngine asked = AskEngine(
      "vllm serve zai-org/GLM-5.2 -tp 8 --kv-cache-memory-bytes 80G --kv-cache-dtype fp8 "
      "--max-model-len 131072",
      "2026-08");
  const vllm::EnginePlan& plan = asked.answer.plan;
  ASSERT_FALSE(plan.failure.has_value()) << plan.failure->message;
  std::set<std::int64_t> words;
  for (const vllm::EngineTensor& tensor : plan.workers[0].tensors) {
    ASSERT_EQ(tensor.size % plan.workers[0].num_blocks, 0);
    words.insert(tensor.size / plan.workers[0].num_blocks / 4);
  }
  EXPECT_EQ(words, (std::set<std::int64_t>{2112, 10496}));
}

// https://github.com/vllm-project/vllm/issues/51752: a pipeline stage without attention did not raise its
// blocks, and its states disagreed with the other stage's. Here blocks are aligned for the model before it is
// cut, and no stage has a spec of its own.
TEST(VllmIssue51752, AStageWithoutAttentionHasTheModelsBlocks) {
  const std::string command =
      "vllm serve moonshotai/Kimi-Linear-48B-A3B-Instruct -pp 2 --kv-cache-memory-bytes 20G "
      "--max-model-len 131072";
  const AskedEngine whole = AskEngine(command);
  const AskedEngine cut = AskEngine("VLLM_PP_LAYER_PARTITION=3,24 " + command);
  const vllm::EngineCase& engine_case = cut.question.engine_case;
  ASSERT_EQ(engine_case.workers.size(), 2U);
  ASSERT_EQ(engine_case.workers[0].layers->size(), 3U);
  for (const std::int32_t layer : *engine_case.workers[0].layers) {
    const auto spec = static_cast<std::size_t>(engine_case.layers[static_cast<std::size_t>(layer)].spec);
    EXPECT_EQ(engine_case.specs[spec].kind, vllm::SpecKind::kMamba);
    EXPECT_EQ(engine_case.specs[spec].page_size_padded, whole.question.hybrid->page_padded);
  }
  EXPECT_TRUE(engine_case.workers[0].overrides.empty());
  ASSERT_FALSE(cut.answer.plan.failure.has_value()) << cut.answer.plan.failure->message;
  EXPECT_EQ(cut.answer.plan.workers[0].num_blocks, cut.answer.plan.workers[1].num_blocks);
}

// https://github.com/vllm-project/vllm/issues/53243: hidden states beside DeepSeek-V4's caches asked for 581
// GiB for 8,192 tokens. Here they take their own rows, and what that is is known before start.
TEST(VllmIssue53243, HiddenStatesTakeTheirOwnRows) {
  const AskedEngine asked = AskEngine(
      "vllm serve deepseek-ai/DeepSeek-V4-Flash --kv-cache-memory-bytes 60G --block-size 256 "
      "--kv-cache-dtype fp8 --max-model-len 8192");
  vllm::EngineCase with = asked.question.engine_case;
  with.layers.push_back({"hidden", static_cast<std::int32_t>(with.specs.size())});
  with.specs.push_back(testing::HiddenSpec(3, 4096));
  const vllm::EnginePlan plan = PlanEngine(with, vllm::EngineVersion::k2026_11);
  ASSERT_FALSE(plan.failure.has_value()) << plan.failure->message;
  EXPECT_LT(*plan.per_worker[0].needed_bytes, 4 * kGib);
  EXPECT_GT(*plan.per_worker[0].needed_bytes, asked.answer.needed_bytes());
}

// https://github.com/vllm-project/vllm/pull/56445: the smaller number of layers became the size of a group,
// and up to 60 % was padding. Here the engine's padding is told beforehand, and natively there is none.
TEST(VllmPull56445, ThePaddingOfUnequalCountsIsToldAndTheNativeHasNone) {
  struct Row {
    int full;
    int sliding;
    std::string log;
  };
  for (const Row& row : {Row{20, 30, "Add 10 padding layers, may waste at most 33.33% KV cache memory"},
                         Row{10, 16, "Add 4 padding layers, may waste at most 25.00% KV cache memory"}}) {
    testing::CaseBuilder builder;
    builder.Layers("f", testing::FullSpec(), row.full).Layers("s", testing::SlidingSpec(), row.sliding);
    const vllm::EnginePlan plan = PlanEngine(builder.engine_case(), vllm::EngineVersion::k2026_11);
    EXPECT_EQ(plan.log, std::vector<std::string>{row.log});
    EXPECT_EQ(WorstPaddingBasisPoints(NativePlan({{row.full, NativeFull()}, {row.sliding, NativeSliding()}})),
              0);
  }
}

}  // namespace
}  // namespace kvasir
