// Reads an engine case: layers with the engine's own specs, workers and options, as JSON
// (docs/formats/engine_specs.md).
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_CASE_JSON_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_CASE_JSON_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/rulesets/vllm/engine_case.h"

namespace kvasir {

inline constexpr std::size_t kEngineCaseBytesMax = std::size_t{4} << 20;

// The case, or an InvalidArgument error that names the field, the value and the fix. Every index of the case
// is in range, names are distinct and sizes are within limits, so that PlanEngine accepts whatever this
// returns.
[[nodiscard]] absl::StatusOr<vllm::EngineCase> ReadEngineCaseJson(std::string_view json);

// The same for an object that was parsed already.
[[nodiscard]] absl::StatusOr<vllm::EngineCase> ReadEngineCase(const nlohmann::json& node);

// Whether brackets outside strings nest deeper than 16: known before any parser sees the text.
[[nodiscard]] bool EngineCaseNestsTooDeep(std::string_view json);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_CASE_JSON_H_
