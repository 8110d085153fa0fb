// --config FILE of a launch command: its words stand before the command's own, which win.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_CONFIG_FILE_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_CONFIG_FILE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvasir {

// Gives the content of a configuration file, or an error whose message says why not.
using ReadLaunchFile = std::function<absl::StatusOr<std::string>(std::string_view path)>;

// Whether the word can follow a flag as its value: no flag, or a negative number.
[[nodiscard]] bool IsFlagValue(std::string_view word);

// Takes "--config FILE" away and puts the file's words first; a model without a flag stays the first word.
// InvalidArgument: given twice, no value, a file that cannot be read or is no flat YAML.
[[nodiscard]] absl::Status TakeConfigFile(const ReadLaunchFile& read_file, bool positional_model,
                                          std::vector<std::string>& words);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_CONFIG_FILE_H_
