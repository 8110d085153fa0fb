// Our own planning options in the engine's words: what a launch of the same models over the same ranks would
// say.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_OF_OPTIONS_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_OF_OPTIONS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "planner/request/engine_settings.h"
#include "planner/request/plan_options.h"

namespace kvasir {

// The longest context becomes the engine's maximum length, the least memory its cache; what a launch cannot
// say, and our own backend, is left to the engine's defaults. InvalidArgument: a cache dtype or backend that
// the engine does not have.
[[nodiscard]] absl::StatusOr<EngineLaunch> LaunchOf(const ModelDescription& target,
                                                    const std::optional<ModelDescription>& draft,
                                                    const PlanOptions& asked, EngineRelease release);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_OF_OPTIONS_H_
