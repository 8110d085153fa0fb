// How the engine shares a model's layers between its pipeline stages (vLLM distributed/utils.py).
#ifndef KVASIR_PLANNER_REQUEST_PIPELINE_STAGES_H_
#define KVASIR_PLANNER_REQUEST_PIPELINE_STAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/request/launch_options.h"

namespace kvasir {

// Layers of each stage, as VLLM_PP_LAYER_PARTITION says, or evenly; the rest go one each to the last stage
// but one, the one before it, and so on. Requires pp >= 1. InvalidArgument: a partition of other stages or
// layers.
[[nodiscard]] absl::StatusOr<std::vector<std::int64_t>> StagesOf(const LaunchOptions& options,
                                                                 std::int64_t layers, std::int64_t pp);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_PIPELINE_STAGES_H_
