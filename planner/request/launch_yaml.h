// A launch configuration file: YAML keys and values as the words that the engine makes of them.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_YAML_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_YAML_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvasir {

// `text` is the file's content, `name` stands in messages. A true becomes "--key", a false "--no-key", a list
// "--key" and its items, a map "--key" and JSON, a null nothing. InvalidArgument: not YAML, not a map, or
// beyond 1 MiB, 32 levels or 10,000 nodes (aliases count each time they are used).
[[nodiscard]] absl::StatusOr<std::vector<std::string>> WordsOfYaml(std::string_view name,
                                                                   std::string_view text);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_YAML_H_
