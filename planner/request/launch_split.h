// A launch command that was pasted as one text: into words, as a POSIX shell does it, without its expansions.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_SPLIT_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_SPLIT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvasir {

inline constexpr std::size_t kLaunchBytesMax = 1 << 20;
inline constexpr std::size_t kLaunchWordsMax = 4096;

// Single and double quotes, backslashes, a backslash at a line's end, and "#" comments; what stands after an
// unquoted ";", "|", "&" or ">" is another command and is not read. Variables stay as they are written.
// InvalidArgument: an open quote, or beyond the limits.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> SplitCommand(std::string_view text);

// The inverse: one line, each word quoted where it must be.
[[nodiscard]] std::string JoinCommand(const std::vector<std::string>& words);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_SPLIT_H_
