// From models and a launch to what the engine's planner is given: layers in registration order (the target's,
// then the draft's), specs of one rank, blocks of hybrids raised until a page holds a state, pipeline stages,
// options.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_SPECS_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_SPECS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/request/engine_settings.h"
#include "planner/request/hybrid_blocks.h"
#include "planner/rulesets/vllm/engine_case.h"

namespace kvasir {

struct EngineQuestion {
  vllm::EngineCase engine_case;
  EngineSettings settings;
  std::optional<HybridBlocks> hybrid;  // of a model with states and attention
  std::int64_t state_bytes = 0;        // of one layer's state, unpadded; 0: none
  std::vector<std::string> log;        // lines that the engine logs before it plans
};

// `memory` is what each worker has for its cache, in bytes: one for all, one for each pipeline stage, or one
// for each rank with the ranks of a stage together. InvalidArgument: what SettingsOf refuses, another number
// of memories, a partition of stages that does not cover the layers, no layer that keeps anything, sizes
// beyond 64 bits.
[[nodiscard]] absl::StatusOr<EngineQuestion> EngineCaseOf(const EngineLaunch& launch,
                                                          const std::vector<std::int64_t>& memory);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_SPECS_H_
