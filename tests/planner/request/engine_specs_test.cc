#include "planner/request/engine_specs.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/models/catalogue.h"
#include "common/models/read_config.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/matchers.h"
#include "tests/testing/shared_data.h"

namespace kvasir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

EngineLaunch Launch(const std::string& target, std::int64_t tp = 1) {
  EngineLaunch launch;
  launch.target = FindInCatalogue(target).value();
  launch.options.tensor_parallel = tp;
  launch.release = ReleaseOf(vllm::EngineVersion::k2026_11);
  return launch;
}

EngineLaunch KimiWithDspark(std::int64_t tp, std::int64_t tokens = 7) {
  EngineLaunch launch = Launch("kimi-k3", tp);
  launch.draft = FindInCatalogue("kimi-k3-dspark").value();
  launch.options.spec_tokens = tokens;
  return launch;
}

std::map<std::string, int> CountByName(const EngineQuestion& question) {
  std::map<std::string, int> counts;
  for (const vllm::EngineLayer& layer : question.engine_case.layers) {
    ++counts[layer.name.substr(layer.name.rfind('.') + 1)];
  }
  return counts;
}

const vllm::EngineSpec& SpecOf(const EngineQuestion& question, const std::string& name) {
  for (const vllm::EngineLayer& layer : question.engine_case.layers) {
    if (layer.name.size() >= name.size() && layer.name.substr(layer.name.size() - name.size()) == name)
      return question.engine_case.specs[static_cast<std::size_t>(layer.spec)];
  }
  ADD_FAILURE() << "no layer " << name;
  return question.engine_case.specs[0];
}

struct KdaRow {
  std::int64_t tp;
  std::int64_t draft_tokens;
  std::int64_t page;
  std::int64_t block;
  std::int64_t padded;
  std::string pad;
};

// The KDA table of the models reference, section 1.
TEST(EngineSpecsTest, KimiK3PagesAndBlocks) {
  for (const KdaRow& row :
       {KdaRow{1, 0, 6512640, 5760, 6635520, "1.89%"}, KdaRow{1, 7, 7028736, 6144, 7077888, "0.70%"},
        KdaRow{4, 0, 1628160, 1536, 1769472, "8.68%"}, KdaRow{4, 7, 1757184, 1536, 1769472, "0.70%"},
        KdaRow{8, 0, 814080, 768, 884736, "8.68%"}, KdaRow{8, 7, 878592, 768, 884736, "0.70%"},
        KdaRow{16, 0, 407040, 384, 442368, "8.68%"}, KdaRow{16, 7, 439296, 384, 442368, "0.70%"}}) {
    SCOPED_TRACE(absl::StrFormat("tp %d, %d draft tokens", row.tp, row.draft_tokens));
    const auto question =
        EngineCaseOf(row.draft_tokens == 0 ? Launch("kimi-k3", row.tp) : KimiWithDspark(row.tp), {80 * kGiB});
    KVASIR_ASSERT_OK(question);
    EXPECT_EQ(question->state_bytes, row.page);
    ASSERT_TRUE(question->hybrid.has_value());
    EXPECT_EQ(question->hybrid->attention_block, row.block);
    EXPECT_EQ(question->hybrid->page_padded, row.padded);
    ASSERT_EQ(question->log.size(), 2U);
    EXPECT_THAT(question->log[1], HasSubstr("by " + row.pad));
  }
}

TEST(EngineSpecsTest, KimiK3WithFp8RowsHasLargerBlocks) {
  for (const auto& [tp, block] : {std::pair{8, 1536}, std::pair{16, 768}}) {
    EngineLaunch launch = KimiWithDspark(tp);
    launch.options.kv_cache_dtype = "fp8";
    const auto question = EngineCaseOf(launch, {80 * kGiB});
    KVASIR_ASSERT_OK(question);
    EXPECT_EQ(question->hybrid->attention_block, block);
    EXPECT_EQ(SpecOf(*question, "model.layers.3.self_attn.attn").dtype, vllm::ElementType::kUint8);
  }
}

TEST(EngineSpecsTest, TheDraftFollowsTheTarget) {
  const auto question = EngineCaseOf(KimiWithDspark(8), {80 * kGiB});
  KVASIR_ASSERT_OK(question);
  const auto& layers = question->engine_case.layers;
  ASSERT_EQ(layers.size(), 98U);
  EXPECT_EQ(layers[93].name, "model.layers.93.self_attn.attn");
  EXPECT_EQ(layers[97].name, "model.layers.97.self_attn.attn");
  EXPECT_TRUE(SpecOf(*question, layers[93].name).non_causal_multi_token_decode);
  EXPECT_FALSE(SpecOf(*question, layers[3].name).non_causal_multi_token_decode);
  EXPECT_EQ(SpecOf(*question, layers[0].name).num_speculative_blocks, 7);
  EXPECT_EQ(CountByName(*question), (std::map<std::string, int>{{"attn", 29}, {"kda", 69}}));
}

// 69 + 24 layers pad by 3 (4.35 %); with five draft layers by 18 (26.09 %): vllm-ascend issue 14314.
TEST(EngineSpecsTest, KimiK3PaddingGrowsWithTheDraft) {
  const auto alone = EngineCaseOf(Launch("kimi-k3", 8), {80 * kGiB});
  KVASIR_ASSERT_OK(alone);
  EXPECT_THAT(vllm::PlanEngine(alone->engine_case, vllm::EngineVersion::k2026_11).groups.size(), 4U);
  const auto drafted = EngineCaseOf(KimiWithDspark(8), {80 * kGiB});
  KVASIR_ASSERT_OK(drafted);
  const vllm::EnginePlan plan = vllm::PlanEngine(drafted->engine_case, vllm::EngineVersion::k2026_11);
  std::vector<std::size_t> sizes;
  sizes.reserve(plan.groups.size());
  for (const vllm::EngineGroup& group : plan.groups) sizes.push_back(group.layers.size());
  std::sort(sizes.begin(), sizes.end());
  EXPECT_THAT(sizes, ElementsAre(23, 23, 23, 29));
}

TEST(EngineSpecsTest, RecoverSsmKeepsOneStateAndARecord) {
  EngineLaunch launch = KimiWithDspark(8);
  launch.options.replay_ssm = true;
  const auto question = EngineCaseOf(launch, {80 * kGiB});
  KVASIR_ASSERT_OK(question);
  const vllm::EngineSpec& spec = SpecOf(*question, "model.layers.0.self_attn.kda");
  EXPECT_EQ(spec.num_speculative_blocks, 0);
  ASSERT_EQ(spec.shapes.size(), 4U);
  EXPECT_THAT(spec.shapes[2], ElementsAre(12, 8, 128));
  EXPECT_THAT(spec.shapes[3], ElementsAre(12, 8, 256));
}

TEST(EngineSpecsTest, ModesDecideTheStatesBlocks) {
  EngineLaunch launch = Launch("kimi-k3", 8);
  launch.options.prefix_caching = false;
  const auto none = EngineCaseOf(launch, {80 * kGiB});
  KVASIR_ASSERT_OK(none);
  EXPECT_EQ(none->settings.mamba_cache_mode, vllm::MambaCacheMode::kNone);
  EXPECT_EQ(none->hybrid->state_block, launch.target.context);
  launch.options.prefix_caching = true;
  const auto align = EngineCaseOf(launch, {80 * kGiB});
  KVASIR_ASSERT_OK(align);
  EXPECT_EQ(align->settings.mamba_cache_mode, vllm::MambaCacheMode::kAlign);
  EXPECT_EQ(align->hybrid->state_block, 768);
}

// The rest goes to the last stage but one, and back from there; the draft to the last.
TEST(EngineSpecsTest, PipelineStagesCoverAllLayersOnce) {
  EngineLaunch launch = KimiWithDspark(8);
  launch.options.pipeline_parallel = 4;
  const auto question = EngineCaseOf(launch, {80 * kGiB});
  KVASIR_ASSERT_OK(question);
  std::vector<std::size_t> sizes;
  std::vector<std::int32_t> all;
  for (const vllm::EngineWorker& worker : question->engine_case.workers) {
    sizes.push_back(worker.layers->size());
    all.insert(all.end(), worker.layers->begin(), worker.layers->end());
  }
  EXPECT_THAT(sizes, ElementsAre(23, 23, 24, 28));
  ASSERT_EQ(all.size(), 98U);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int32_t>(i));

  launch.options.pp_layer_partition = {10, 30, 30, 23};
  const auto said = EngineCaseOf(launch, {80 * kGiB});
  KVASIR_ASSERT_OK(said);
  EXPECT_EQ(said->engine_case.workers[0].layers->size(), 10U);
}

struct ErrorCase {
  std::string name;
  std::function<void(EngineLaunch&)> change;
  std::string field;
  std::string part;
};

TEST(EngineSpecsTest, RefusesWhatTheEngineRefuses) {
  const std::vector<ErrorCase> cases = {
      {"dcp", [](EngineLaunch& l) { l.options.decode_context_parallel = 3; },
       "--decode-context-parallel-size", "divisor of 8"},
      {"pp", [](EngineLaunch& l) { l.options.pipeline_parallel = 94; }, "--pipeline-parallel-size",
       "93 layers"},
      {"length", [](EngineLaunch& l) { l.options.max_model_len = 1048577; }, "--max-model-len",
       "at most 1048576"},
      {"tokens", [](EngineLaunch& l) { l.options.spec_tokens.reset(); },
       "--speculative-config.num_speculative_tokens", "add num_speculative_tokens"},
      {"mtp",
       [](EngineLaunch& l) {
         l.draft.reset();
         l.options.spec_method = "mtp";
       },
       "--speculative-config.method", "no MTP layers"},
      {"no draft",
       [](EngineLaunch& l) {
         l.draft.reset();
         l.options.spec_method = "eagle3";
       },
       "--speculative-config.model", "needs a draft model"},
      {"backend", [](EngineLaunch& l) { l.options.attention_backend = "FLASH_ATTN"; }, "--attention-backend",
       "use one of"},
      {"dtype", [](EngineLaunch& l) { l.options.attention_backend = "TOKENSPEED_MLA"; },
       "--attention-backend", "does not read a cache of bfloat16"},
      {"block",
       [](EngineLaunch& l) {
         l.options.attention_backend = "FLASHINFER_MLA";
         l.options.block_size = 16;
       },
       "--attention-backend", "--block-size 16"},
      {"sharded draft",
       [](EngineLaunch& l) {
         l.options.attention_backend = "FLASHINFER_MLA";
         l.options.kv_cache_dtype = "fp8";
         l.options.decode_context_parallel = 8;
       },
       "--attention-backend", "use one of TOKENSPEED_MLA"},
      {"sharded target",
       [](EngineLaunch& l) {
         l.options.attention_backend = "FLASHMLA";
         l.options.decode_context_parallel = 8;
       },
       "--attention-backend", "does not run causal blocks"},
      {"partition", [](EngineLaunch& l) { l.options.pp_layer_partition = {93, 1}; },
       "VLLM_PP_LAYER_PARTITION", "1 stages of 93"},
  };
  for (const ErrorCase& c : cases) {
    SCOPED_TRACE(c.name);
    EngineLaunch launch = KimiWithDspark(8);
    c.change(launch);
    const auto question = EngineCaseOf(launch, {80 * kGiB});
    ASSERT_FALSE(question.ok());
    EXPECT_EQ(ErrorOf(question.status()).field, c.field);
    EXPECT_THAT(std::string(question.status().message()), HasSubstr(c.part));
  }
  EXPECT_THAT(EngineCaseOf(KimiWithDspark(8), {1, 2, 3}),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, "--kv-memory has 3 sizes"));
}

TEST(EngineReleaseTest, TextsOfLogs) {
  const std::vector<std::pair<std::string, std::int32_t>> cases = {
      {"0.19.2rc1.dev134+gfe9c3d6c5", 20260402},
      {"0.11.1 era (kv_cache_utils.py:1229)", 20251118},
      {"0.20.1.dev0+g101584af0.d20260424", 20260424},
      {"vLLM 2026-08", 20260815},
      {"0.24.0", 20260628},
      {"0.20.1rc1.dev16+g7a1eb8ac2", 20260427},
      {"0.20.2rc1.dev9+g01d4d1ad3", 20260510},
      {"0.6 (V0)", 20240905}};
  for (const auto& [text, day] : cases) {
    const auto release = ParseEngineRelease(text);
    ASSERT_TRUE(release.has_value()) << text;
    EXPECT_EQ(release->day, day) << text;
  }
  EXPECT_FALSE(ParseEngineRelease("vLLM fork").has_value());
  EXPECT_FALSE(ParseEngineRelease("0.1.dev1+ga919d635d (mid-2026 main)").has_value());
  EXPECT_EQ(ParseEngineDay("2026-05 (doc)")->day, 20260515);
  EXPECT_FALSE(ParseEngineDay("May").has_value());
}

struct SharedCase {
  std::string folder;
  std::int64_t tp;
  std::int32_t day;
  std::int64_t page;
  std::int64_t block;
  std::string dtype = "auto";
};

// Public numbers of the models reference, section 5, and of start-up logs.
TEST(EngineSpecsTest, PublicHybridBlocks) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  for (const SharedCase& c : {
           SharedCase{"moonshotai__Kimi-Linear-48B-A3B-Instruct", 2, 20251106, 1085440, 960},
           SharedCase{"Qwen__Qwen3-Next-80B-A3B-Instruct", 2, 20251023, 548864, 544},
           SharedCase{"Qwen__Qwen3.5-35B-A3B", 1, 20260505, 2146304, 1056},
           SharedCase{"Qwen__Qwen3.5-35B-A3B", 1, 20260505, 2146304, 2096, "fp8"},
           SharedCase{"nvidia__NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", 1, 20260504, 4255744, 8320, "fp8"},
       }) {
    SCOPED_TRACE(c.folder);
    EngineLaunch launch;
    const auto model = ReadConfigPath(data + "/configs/" + c.folder);
    KVASIR_ASSERT_OK(model);
    launch.target = *model;
    launch.options.tensor_parallel = c.tp;
    launch.options.kv_cache_dtype = c.dtype;
    launch.release.day = c.day;
    const auto question = EngineCaseOf(launch, {8 * kGiB});
    KVASIR_ASSERT_OK(question);
    EXPECT_EQ(question->state_bytes, c.page);
    EXPECT_EQ(question->hybrid->attention_block, c.block);
  }
}

// Every configuration, on one rank and on eight, in both releases, with its MTP layers where it has some.
TEST(EngineSpecsTest, EveryPublicModelIsPlanned) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  int plans = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data + "/configs")) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    EngineLaunch launch;
    const auto model = ReadConfigPath(entry.path().string());
    KVASIR_ASSERT_OK(model);
    launch.target = *model;
    for (const std::int64_t tp : {1, 8}) {
      for (const auto version : {vllm::EngineVersion::k2026_08, vllm::EngineVersion::k2026_11}) {
        launch.options.tensor_parallel = tp;
        launch.release = ReleaseOf(version);
        if (tp == 8 && model->mtp_depth > 0) {
          launch.options.spec_method = "mtp";
          launch.options.spec_tokens = model->mtp_depth;
        }
        const auto question = EngineCaseOf(launch, {std::int64_t{1} << 46});
        if (tp == 8 && ErrorOf(question.status()).field == "--tensor-parallel-size") continue;  // 14 heads
        KVASIR_ASSERT_OK(question);
        const vllm::EnginePlan plan = vllm::PlanEngine(question->engine_case, version);
        EXPECT_FALSE(plan.failure.has_value()) << plan.failure->message;
        EXPECT_TRUE(plan.max_concurrency.has_value());
        ++plans;
      }
      launch.options.spec_method.reset();
      launch.options.spec_tokens.reset();
    }
  }
  EXPECT_GT(plans, 600);
}

}  // namespace
}  // namespace kvasir
