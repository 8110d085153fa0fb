// Which decoder layers a pipeline stage owns, and which decoder layer a cache layer belongs to.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_STAGE_LAYERS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_STAGE_LAYERS_H_

#include <cstdint>
#include <string_view>

#include "planner/rulesets/vllm/engine_failure.h"

namespace kvasir::vllm {

// [begin, end).
struct StageRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The engine's default partition: equal shares, and one layer more for the stages before the last, from the
// end. Requires stages >= 1 and 0 <= stage < stages.
[[nodiscard]] StageRange LayersOfStage(std::int64_t layers, std::int64_t stage, std::int64_t stages);

// The one whole number between the dots of a layer's name: 3 of "model.layers.3.attn". AssertionError if
// there is none, or several.
[[nodiscard]] EngineResult<std::int64_t> LayerIndexOfName(std::string_view name);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_STAGE_LAYERS_H_
