// Writing a file so that a reader sees the old content or the new, never a part, whatever happens meanwhile.
#ifndef KVASIR_PLANNER_CLI_WRITE_FILE_H_
#define KVASIR_PLANNER_CLI_WRITE_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvasir::cli {

// The text goes into a file of this process beside `path`, which then takes its name; a link is followed,
// also to what is not there yet, permissions are kept, and what is no regular file (a pipe, a device) is
// written as it is. Unavailable with the system's reason where that fails; nothing is left behind, and a file
// that was there is as it was.
[[nodiscard]] absl::Status WriteFile(const std::string& path, std::string_view text);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_WRITE_FILE_H_
