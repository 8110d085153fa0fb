// Where a command writes, and with what: streams, colour, exit codes and the few facts of its surroundings.
// Commands touch nothing else, so that tests run them in-process.
#ifndef KVASIR_PLANNER_CLI_CONSOLE_H_
#define KVASIR_PLANNER_CLI_CONSOLE_H_

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::cli {

// docs/formats/cli.md; scripts depend on them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;
inline constexpr int kExitBadUsage = 2;
inline constexpr int kExitDoesNotFit = 3;
inline constexpr int kExitServiceFailure = 4;

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool colour = false;  // of `out`; a terminal, and NO_COLOR is not set
  // An environment variable; nullopt where it is not set or empty.
  std::function<std::optional<std::string>(std::string_view)> variable;
  // Runs kvasir-remote with these arguments in place of this process and does not return on success;
  // otherwise gives the exit code.
  std::function<int(const std::vector<std::string>&)> run_remote;
};

enum class Ink { kGood, kBad, kDim, kBold };

// The same console, whose answers go where complaints go: for whoever asked for a text that there is none of.
[[nodiscard]] Console Complaining(const Console& console);

// `text` in the ink, where the console has colour; colour is never needed to understand.
[[nodiscard]] std::string Inked(const Console& console, Ink ink, std::string_view text);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_CONSOLE_H_
