// What the programs `kvasir` and `kvasir-remote` tell their commands of the process.
#ifndef KVASIR_PLANNER_CLI_PROGRAM_H_
#define KVASIR_PLANNER_CLI_PROGRAM_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::cli {

// An environment variable; nullopt where it is not set or empty.
[[nodiscard]] std::optional<std::string> ProcessVariable(std::string_view name);

// The standard output is a terminal, NO_COLOR is not set and TERM is not "dumb".
[[nodiscard]] bool ProcessWantsColour();

// The exit code of a command that has ended with `code`: where its answer could not be written to the
// standard output (a full disk, a closed one), that is said and the code is kExitServiceFailure.
[[nodiscard]] int AfterOutput(int code);

// Replaces this process by `program` beside this one. Comes back only where that fails, with the exit code.
[[nodiscard]] int RunBeside(const std::string& program, const std::vector<std::string>& args);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_PROGRAM_H_
