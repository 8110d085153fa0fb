// Ways out for a launch that the engine refuses: single changes with which it would start. Each was judged by
// the same rules as the launch itself.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_REMEDIES_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_REMEDIES_H_

#include <string>
#include <vector>

#include "planner/request/engine_settings.h"

namespace kvasir {

// Whether the engine takes the launch, whatever memory it has: options, backends and the plan of its caches.
[[nodiscard]] bool EngineTakes(const EngineLaunch& launch);

// Flags, best first: other backends, then parallelism, dtype, block, length and drafting. Empty where more
// than one thing must change, and where the engine takes it as it is.
[[nodiscard]] std::vector<std::string> AcceptedInstead(const EngineLaunch& launch);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_REMEDIES_H_
