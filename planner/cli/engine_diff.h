// A plan beside what the engine vLLM would make of the same question, in each layout that it has.
#ifndef KVASIR_PLANNER_CLI_ENGINE_DIFF_H_
#define KVASIR_PLANNER_CLI_ENGINE_DIFF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/cli/console.h"
#include "planner/core/compare_plans.h"
#include "planner/questions/engine_modes.h"

namespace kvasir::cli {

struct EngineDifference {
  std::string ruleset;  // "vllm-2026-11"
  std::string plan_id;
  std::string rollback;  // of the plan
  EngineComparison engine;
  // By length: the engine's best layout, then the plan. Empty: see engine.why_none.
  std::vector<CapacityChange> capacity;
  std::optional<std::int64_t> limit;  // hundredths of a percent

  [[nodiscard]] bool Fails(const CapacityChange& change) const {
    return limit.has_value() && LosesMoreThan(change, *limit);
  }
  // A gate that has nothing to compare with does not pass.
  [[nodiscard]] bool Fails() const;
};

// `word` names a plan whose question is stored. The errors of LoadPlan and LoadQuestion.
[[nodiscard]] absl::StatusOr<EngineDifference> CompareWithEngine(const Console& console,
                                                                 std::string_view ruleset,
                                                                 const std::string& word,
                                                                 std::optional<std::int64_t> limit);

void ShowEngineDifference(const Console& console, const EngineDifference& difference);

// Schema kvasir.engine_diff/1 (docs/formats/plan_json.md).
[[nodiscard]] std::string EngineDifferenceJson(const EngineDifference& difference);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_ENGINE_DIFF_H_
