// An engine plan in the words of the case files, for comparison.
#ifndef KVASIR_TESTS_TOOLS_ENGINE_PLAN_JSON_H_
#define KVASIR_TESTS_TOOLS_ENGINE_PLAN_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/engine_plan.h"

namespace kvasir::testing {

// Everything that a case file says of a plan, with its keys: groups, workers, errors. A spec whose page
// cannot be read has "error" in place of its fields, as there.
[[nodiscard]] nlohmann::json EnginePlanJson(const vllm::EngineCase& engine_case,
                                            const vllm::EnginePlan& plan);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TOOLS_ENGINE_PLAN_JSON_H_
