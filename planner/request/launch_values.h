// One value of a launch command: text into a member of LaunchOptions and back, by the form that the flag's
// row states. Numbers are read as the engine reads them: k, m, g, t are powers of 1000 and K, M, G, T powers
// of 1024.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_VALUES_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/request/launch_flags.h"
#include "planner/request/launch_options.h"

namespace kvasir {

// "128k", "1M", "25.6k", "4096": InvalidArgument for another form, a fraction before a power of 1024, or a
// value beyond 64 bits. A fraction of one is dropped.
[[nodiscard]] absl::StatusOr<std::int64_t> ParseEngineSize(std::string_view text);

// Sets the member that `row` names; `said` is how the command spelled the flag, for messages. `words` has one
// entry, or any number for kTexts and kInts. A row without a member is checked for its form only.
// InvalidArgument names the flag, the value and the fix.
[[nodiscard]] absl::Status SetLaunchValue(const FlagRow& row, std::string_view said,
                                          const std::vector<std::string>& words, LaunchOptions& options);

// Whether the member that `row` names has a value.
[[nodiscard]] bool HasLaunchValue(const FlagRow& row, const LaunchOptions& options);

// The words that SetLaunchValue reads back as the member's value; nullopt where it has none. A switch gives
// "true" or "false".
[[nodiscard]] std::optional<std::vector<std::string>> LaunchValueWords(const FlagRow& row,
                                                                       const LaunchOptions& options);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_VALUES_H_
