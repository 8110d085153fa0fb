// Which captured graphs the engine keeps of those that a launch asks for: its backends say which batches a
// graph may hold (backends.h), and it takes less, or raises, where they cannot. Facts:
// vllm/config/compilation.py (resolve_cudagraph_mode_and_sizes).
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_GRAPHS_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_GRAPHS_H_

#include "absl/status/status.h"
#include "planner/request/engine_settings.h"

namespace kvasir {

// InvalidArgument where the engine raises; adds to settings.warnings where it takes another mode. Only modes
// that the launch names, and backends that the table knows, are judged.
[[nodiscard]] absl::Status CheckEngineGraphs(const EngineLaunch& launch, EngineSettings& settings);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_GRAPHS_H_
