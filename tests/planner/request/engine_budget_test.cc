#include "planner/request/engine_budget.h"

#include <string>
#include <utility>
#include <vector>

#include "common/models/catalogue.h"
#include "common/models/read_config.h"
#include "planner/request/checkpoint_json.h"
#include "tests/testing/matchers.h"
#include "tests/testing/shared_data.h"

namespace kvasir {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct LoadedCase {
  std::string folder;
  std::int64_t tp;
  double gib;  // "Model loading took ... GiB" of a public log
};

TEST(EngineBudgetTest, PublicWeightsLieInTheRange) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  for (const LoadedCase& c :
       {LoadedCase{"google__gemma-2-27b", 1, 50.72}, LoadedCase{"google__gemma-3-27b-it", 1, 51.45},
        LoadedCase{"openai__gpt-oss-120b", 4, 17.2217}, LoadedCase{"MiniMaxAI__MiniMax-M2.5", 4, 53.75},
        LoadedCase{"Qwen__Qwen3-Next-80B-A3B-Instruct", 2, 74.2812},
        LoadedCase{"Qwen__Qwen3.5-35B-A3B", 1, 64.69}, LoadedCase{"nvidia__Gemma-4-26B-A4B-NVFP4", 1, 15.76},
        LoadedCase{"meta-llama__Llama-3.1-8B-Instruct", 1, 14.99}}) {
    SCOPED_TRACE(c.folder);
    const auto model = ReadConfigPath(data + "/configs/" + c.folder);
    KVASIR_ASSERT_OK(model);
    const BytesRange range = WeightBytesOf(*model, {.tp = c.tp}, std::nullopt);
    EXPECT_LE(static_cast<double>(range.least) / kGiB, c.gib);
    EXPECT_GE(static_cast<double>(range.most) / kGiB, c.gib);
    EXPECT_LT(static_cast<double>(range.most - range.least), 0.4 * static_cast<double>(range.most));
  }
}

// Configurations whose names promise a format that they do not give.
TEST(EngineBudgetTest, AFormatThatOnlyTheNameGivesWidensTheRange) {
  ModelDescription model = *FindInCatalogue("llama-3.1-8b");
  const BytesRange plain = WeightBytesOf(model, {}, std::nullopt);
  EXPECT_EQ(UnstatedFormat(model, ""), "");
  const BytesRange named = WeightBytesOf(model, {.name = "nvidia/Llama-3.1-8B-Instruct-FP8"}, std::nullopt);
  EXPECT_EQ(UnstatedFormat(model, "nvidia/Llama-3.1-8B-Instruct-FP8"), "FP8");
  EXPECT_EQ(named.most, plain.most);
  EXPECT_NEAR(static_cast<double>(named.least), 0.5 * static_cast<double>(plain.least), 1.0);
  EXPECT_NE(named.basis.find("an upper bound: the name says FP8"), std::string::npos) << named.basis;
  EXPECT_EQ(WeightBytesOf(model, {.name = "x-FP8"}, 1000).most, 1000);  // an index knows
  model.name = "nvidia/DeepSeek-V3.1-nvfp4";
  EXPECT_EQ(UnstatedFormat(model, ""), "NVFP4");
  model.quantisation.method = "modelopt";
  EXPECT_EQ(UnstatedFormat(model, "x-FP8"), "");
}

TEST(EngineBudgetTest, PublicNamesWithoutAFormatAreFound) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  for (const auto& [folder, word] :
       {std::pair{"nvidia__DeepSeek-V3.1-NVFP4", "NVFP4"}, std::pair{"nvidia__GLM-5-NVFP4", "NVFP4"},
        std::pair{"nvidia__Llama-3.1-70B-Instruct-FP8", "FP8"}, std::pair{"Qwen__Qwen3-32B-FP8", ""},
        std::pair{"nvidia__Gemma-4-26B-A4B-NVFP4", ""}, std::pair{"google__gemma-2-27b", ""}}) {
    const auto model = ReadConfigPath(data + "/configs/" + folder);
    KVASIR_ASSERT_OK(model);
    EXPECT_EQ(UnstatedFormat(*model, model->name), word) << folder;
  }
}

struct CacheCase {
  std::string folder;
  std::string gpu;
  std::int64_t tp;
  double utilization;
  std::int32_t day;
  double gib;  // "Available KV cache memory"
};

TEST(EngineBudgetTest, PublicCacheMemoryLiesInTheRange) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  for (const CacheCase& c : {CacheCase{"meta-llama__Llama-3.1-8B-Instruct", "h100", 1, 0.95, 20260402, 58.11},
                             CacheCase{"google__gemma-2-27b", "h100", 1, 0.95, 20260402, 20.59},
                             CacheCase{"google__gemma-3-27b-it", "h100", 1, 0.95, 20260402, 19.53},
                             CacheCase{"openai__gpt-oss-120b", "a100", 4, 0.8, 20250818, 45.32},
                             CacheCase{"Qwen__Qwen3-0.6B", "l40s", 1, 0.9, 20251118, 37.42}}) {
    SCOPED_TRACE(c.folder);
    EngineLaunch launch;
    const auto model = ReadConfigPath(data + "/configs/" + c.folder);
    KVASIR_ASSERT_OK(model);
    launch.target = *model;
    launch.options.tensor_parallel = c.tp;
    launch.options.gpu_memory_utilization = c.utilization;
    launch.options.max_model_len = 8192;
    launch.release.day = c.day;
    launch.device = *FindGpu(c.gpu);
    const auto settings = SettingsOf(launch);
    KVASIR_ASSERT_OK(settings);
    const EngineBudget budget = BudgetOf(launch, *settings, std::nullopt, std::nullopt);
    EXPECT_LE(static_cast<double>(budget.cache.least) / kGiB, c.gib);
    EXPECT_GE(static_cast<double>(budget.cache.most) / kGiB, c.gib);
    for (const BudgetLine& line : budget.taken) {
      EXPECT_LE(line.bytes.least, line.bytes.most) << line.what;
      EXPECT_FALSE(line.bytes.basis.empty()) << line.what;
    }
  }
}

TEST(EngineBudgetTest, ACheckpointsIndexIsExactOnOneRank) {
  const auto bytes = CheckpointBytes(R"({"metadata": {"total_size": 1000}, "weight_map": {}})");
  KVASIR_ASSERT_OK(bytes);
  const BytesRange range = WeightBytesOf(ModelDescription(), {}, *bytes);
  EXPECT_EQ(range.least, 1000);
  EXPECT_EQ(range.most, 1000);
  for (const char* wrong :
       {"", "[]", "{}", R"({"metadata": {"total_size": "x"}})", R"({"metadata": {"total_size": -1}})"}) {
    EXPECT_FALSE(CheckpointBytes(wrong).ok()) << wrong;
  }
}

TEST(GpuTableTest, NamesAsPeopleGiveThem) {
  for (const char* name : {"h200", "H200", "NVIDIA H200"}) EXPECT_EQ(FindGpu(name)->name, "h200") << name;
  EXPECT_EQ(FindGpu("RTX PRO 6000")->name, "rtxpro6000");
  EXPECT_THAT(FindGpu("h201"), testing::StatusIs(absl::StatusCode::kNotFound, "nearest: h20"));
  EXPECT_THAT(FindGpu(""), testing::StatusIs(absl::StatusCode::kNotFound, "there are h100nvl"));
  EXPECT_EQ(GpuIn("8x RTX PRO 6000 96GB")->name, "rtxpro6000");
  EXPECT_EQ(GpuIn("4x A100 80GB")->name, "a100");
  EXPECT_EQ(GpuIn("2x GH200 96GB")->name, "gh200");
  EXPECT_EQ(GpuIn("1x L40S")->name, "l40s");
  EXPECT_FALSE(GpuIn("TPU v5e-8").has_value());
  for (const GpuRow& row : GpuTable()) {
    EXPECT_LT(row.bytes_least, row.bytes_most) << row.name;
    EXPECT_EQ(FindGpu(row.name)->name, row.name);
    EXPECT_FALSE(row.source.empty());
  }
}

}  // namespace
}  // namespace kvasir
