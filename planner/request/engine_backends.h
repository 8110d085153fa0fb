// What the engine checks about attention backends before it plans: rows that they read, blocks, and block
// drafts over a sharded context. A refusal names the backends that would do (backends.h has the table).
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_BACKENDS_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_BACKENDS_H_

#include "absl/status/status.h"
#include "planner/request/engine_settings.h"

namespace kvasir {

// InvalidArgument where a backend that the launch names cannot run it; OK where no backend is named, or where
// the table does not know it.
[[nodiscard]] absl::Status CheckEngineBackends(const EngineLaunch& launch, const EngineSettings& settings);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_BACKENDS_H_
