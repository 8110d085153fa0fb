// What the engine checks about ranks before it loads a model: how heads, stages and a sharded context divide.
// Facts: vllm/config/model.py (verify_with_parallel_config), vllm/config/{parallel,vllm}.py.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_PARALLELISM_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_PARALLELISM_H_

#include "absl/status/status.h"
#include "planner/request/engine_settings.h"

namespace kvasir {

// InvalidArgument, naming flag, value and fix, where the engine raises. Reads settings.tp, pp, dcp.
[[nodiscard]] absl::Status CheckParallelism(const EngineLaunch& launch, const EngineSettings& settings);

// The same for consecutive tokens of one rank: a block holds whole runs. Reads settings.dcp and block, which
// is not final for hybrids: those are not judged.
[[nodiscard]] absl::Status CheckInterleave(const EngineLaunch& launch, const EngineSettings& settings);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_PARALLELISM_H_
