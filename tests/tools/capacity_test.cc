#include <sstream>
#include <string>
#include <vector>

#include "planner/request/plain_model_name.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"
#include "tests/testing/shared_data.h"
#include "tests/tools/capacity_page.h"
#include "tests/tools/check_capacity.h"

namespace kvasir {
namespace {

using ::testing::HasSubstr;

LogRow Row(const std::string& json) {
  const auto row = ReadLogRow(json);
  EXPECT_TRUE(row.ok()) << row.status();
  return row.ok() ? *row : LogRow();
}

// A log of our own making: 40 GiB over 61 latent layers of 1152 B, blocks of 64.
std::string KimiRow(const std::string& figures) {
  return R"~({"id":"made","model":"moonshotai/Kimi-K2-Instruct","engine_version":"0.11.0","gpu":"8x H200",)~"
         R"~("tp":8,"pp":1,"dcp":1,"kv_cache_dtype":"auto (bf16)","block_size":64,"max_model_len":131072,)~"
         R"~("available_kv_memory_gib":40.00,"check_kind":"from-memory",)~" +
         figures + "}";
}

TEST(CapacityCheckTest, PassesOnlyWhatOneNumberOfBlocksGives) {
  const LogModels models("");
  // 40 GiB / (61 * 1152 * 64) = 9549.6 blocks; the rounding of 40.00 leaves 9548 to 9550.
  EXPECT_EQ(CheckCapacity(Row(KimiRow(R"("kv_cache_tokens":611136,"max_concurrency":4.66)")), models).verdict,
            CapacityVerdict::kPassed);
  for (const char* wrong :
       {R"("kv_cache_tokens":611137)", R"("kv_cache_tokens":611328)",
        R"("kv_cache_tokens":611136,"max_concurrency":4.68)",
        R"("kv_cache_tokens":611136,"num_gpu_blocks":9550)", R"("num_gpu_blocks":9552)"}) {
    const CapacityAnswer answer = CheckCapacity(Row(KimiRow(wrong)), models);
    EXPECT_EQ(answer.verdict, CapacityVerdict::kFailed) << wrong;
    EXPECT_THAT(answer.text, HasSubstr("printed")) << wrong;
  }
}

TEST(CapacityCheckTest, ARowWithoutAKnownModelFailsByName) {
  const CapacityAnswer answer = CheckCapacity(
      Row(R"({"id":"x","model":"nobody/No-Such-Model","max_model_len":1,"check_kind":"fitted","num_gpu_blocks":1})"),
      LogModels(""));
  EXPECT_EQ(answer.verdict, CapacityVerdict::kFailed);
  EXPECT_THAT(answer.text, HasSubstr("no-such-model"));
}

TEST(CapacityCheckTest, RowsWithTooFewInputsAreSkipped) {
  EXPECT_EQ(CheckCapacity(Row(R"({"id":"x","check_kind":null})"), LogModels("")).verdict,
            CapacityVerdict::kSkipped);
}

TEST(CapacityCheckTest, OtherLinesAreNotRows) {
  for (const char* line : {"", "[]", "{", "{\"id\": 3}", "null"}) EXPECT_FALSE(ReadLogRow(line).ok()) << line;
  const LogRow row =
      Row(R"({"id":"x","tp":"8","max_model_len":1e300,"other_lines":[1,"max_num_batched_tokens 8192"]})");
  EXPECT_FALSE(row.tp.has_value());
  EXPECT_FALSE(row.max_model_len.has_value());
  EXPECT_EQ(row.NumberAfter("max_num_batched_tokens"), 8192);
}

TEST(LogModelsTest, PlainNames) {
  EXPECT_EQ(PlainModelName("lukealonso/GLM-5.1-NVFP4-MTP"), "glm-5.1");
  EXPECT_EQ(PlainModelName("Qwen3.6-27B AutoRound INT4"), "qwen3.6-27b");
  EXPECT_EQ(PlainModelName("meta-llama/Llama-3.1-8B(-Instruct) (inferred)"), "llama-3.1-8b");
  EXPECT_EQ(PlainModelName("mistralai/Mistral-Small-3.2-24B-Instruct-2506"), "mistral-small-3.2-24b");
}

std::vector<LogRow> SharedRows(const std::string& data) {
  const auto text = testing::ReadFile(data + "/capacity_logs.jsonl");
  EXPECT_TRUE(text.has_value());
  std::vector<LogRow> rows;
  std::istringstream lines(text.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) rows.push_back(Row(line));
  }
  return rows;
}

TEST(CapacityLogsTest, PublicLogsAreReproduced) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  const LogModels models(data + "/configs");
  int checked = 0;
  for (const LogRow& row : SharedRows(data)) {
    const CapacityAnswer answer = CheckCapacity(row, models);
    if (answer.verdict == CapacityVerdict::kSkipped) continue;
    ++checked;
    EXPECT_EQ(answer.verdict, CapacityVerdict::kPassed) << row.id << ": " << answer.text;
    if (row.check_kind == "consistency") continue;
    EXPECT_EQ(answer.text.find("not recomputed"), std::string::npos) << row.id;
  }
  EXPECT_EQ(checked, 56);
}

TEST(CapacityLogsTest, DifferencesAreExplained) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  testing::ExpectGolden("../../docs/generated/capacity_differences.md",
                        CapacityPage(SharedRows(data), LogModels(data + "/configs")));
}

}  // namespace
}  // namespace kvasir
