// Every recorded case of the shared data: what the engine's own functions made of it, and what optimised
// Python did.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/request/engine_case_json.h"
#include "planner/rulesets/vllm/engine_plan_text.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/shared_data.h"
#include "tests/tools/compare_engine_plan.h"

namespace kvasir {
namespace {

using nlohmann::json;

// The files in the format of records; variant_C has another and serves a repro test.
std::vector<std::string> CaseFiles(const std::string& data) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(data + "/vllm_cases")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".json" && name.rfind("variant_", 0) != 0)
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Whether optimised Python planned otherwise, apart from the mere question for one type, which planning never
// reaches for an unregistered spec.
bool OptimisedDiffers(const json& record, const std::string& version) {
  if (!record.contains("with_O") || !record["with_O"].contains(version)) return false;
  json plain = record["expected"][version];
  json optimised = record["with_O"][version];
  plain.erase("is_type_uniform");
  optimised.erase("is_type_uniform");
  return plain != optimised;
}

TEST(VllmCases, EveryRecordIsReproduced) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  const std::vector<std::string> files = CaseFiles(data);
  ASSERT_FALSE(files.empty());
  int compared = 0;
  for (const std::string& file : files) {
    const auto text = testing::ReadFile(file);
    ASSERT_TRUE(text.has_value()) << file;
    const auto verdicts = testing::CheckCaseFile(*text);
    ASSERT_TRUE(verdicts.has_value()) << file;
    for (const testing::CaseVerdict& verdict : *verdicts) {
      compared += verdict.skipped ? 0 : 1;
      EXPECT_TRUE(verdict.differences.empty())
          << verdict.id << " " << verdict.version << ": " << verdict.differences.front();
    }
  }
  EXPECT_GT(compared, 100);
}

// A record says where optimised Python gave something else; our warning must say so there, and nowhere else.
TEST(VllmCases, WarningsNameWhatOptimisedPythonChanges) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  for (const std::string& file : CaseFiles(data)) {
    const auto text = testing::ReadFile(file);
    ASSERT_TRUE(text.has_value()) << file;
    for (const json& record : json::parse(*text)) {
      const auto engine_case = ReadEngineCase(record["case"]);
      if (!engine_case.ok()) continue;
      for (const auto version : {vllm::EngineVersion::k2026_08, vllm::EngineVersion::k2026_11}) {
        const std::string name = version == vllm::EngineVersion::k2026_08 ? "A" : "B";
        if (record["expected"][name].is_null()) continue;
        const bool changes = OptimisedDiffers(record, name);
        const vllm::EnginePlan plan = PlanEngine(*engine_case, version);
        const bool warned = std::any_of(plan.warnings.begin(), plan.warnings.end(),
                                        [](const auto& warning) { return warning.about == "python -O"; });
        EXPECT_EQ(changes, warned) << record["id"] << " " << name;
      }
    }
  }
}

TEST(VllmCases, TextsAreShortAndDependOnNothingButThePlan) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  for (const std::string& file : CaseFiles(data)) {
    const auto text = testing::ReadFile(file);
    ASSERT_TRUE(text.has_value()) << file;
    for (const json& record : json::parse(*text)) {
      const auto engine_case = ReadEngineCase(record["case"]);
      if (!engine_case.ok()) continue;
      for (const auto version : {vllm::EngineVersion::k2026_08, vllm::EngineVersion::k2026_11}) {
        const std::string first = ToText(*engine_case, PlanEngine(*engine_case, version));
        const std::string second = ToText(*engine_case, PlanEngine(*engine_case, version));
        EXPECT_EQ(first, second) << record["id"];
        EXPECT_LE(first.size(), std::size_t{32} << 10) << record["id"];
        EXPECT_TRUE(std::all_of(first.begin(), first.end(), [](char c) {
          return c == '\n' || (' ' <= c && c <= '~');
        })) << record["id"];
      }
    }
  }
}

}  // namespace
}  // namespace kvasir
