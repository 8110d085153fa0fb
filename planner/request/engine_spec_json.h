// One spec of an engine case.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_SPEC_JSON_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_SPEC_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir {

// Reads the fields that the spec's kind has; any other key is a fault. `path` is that of the spec:
// "specs.full". The first fault is kept in `error`, and the spec is then meaningless.
[[nodiscard]] vllm::EngineSpec ReadEngineSpec(const nlohmann::json& node, std::string path,
                                              absl::Status& error);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_SPEC_JSON_H_
