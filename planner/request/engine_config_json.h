// The options of an engine case.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_CONFIG_JSON_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_CONFIG_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "planner/rulesets/vllm/engine_case.h"

namespace kvasir {

// Any key that is not an option is a fault. The first fault is kept in `error`, and the result is then
// meaningless.
[[nodiscard]] vllm::EngineConfig ReadEngineConfig(const nlohmann::json& node, std::string path,
                                                  absl::Status& error);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_CONFIG_JSON_H_
