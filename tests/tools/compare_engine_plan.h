// Replays records of vllm_cases against the vllm rulesets.
#ifndef KVASIR_TESTS_TOOLS_COMPARE_ENGINE_PLAN_H_
#define KVASIR_TESTS_TOOLS_COMPARE_ENGINE_PLAN_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir::testing {

// One case under one version.
struct CaseVerdict {
  std::string id = {};
  std::string version = {};                   // "A", "B"
  bool skipped = false;                       // the engine gave no answer for this version
  std::vector<std::string> differences = {};  // "groups[1].layer_names: ..."; empty: passed
};

// Both versions of one record.
[[nodiscard]] std::vector<CaseVerdict> CheckRecord(const nlohmann::json& record);

// All records of a file's text; nullopt if it is no JSON list of records with case and expected.
[[nodiscard]] std::optional<std::vector<CaseVerdict>> CheckCaseFile(const std::string& text);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TOOLS_COMPARE_ENGINE_PLAN_H_
