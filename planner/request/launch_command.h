// "Paste your launch command": what `vllm serve MODEL --flags` says about the cache. Understands what the
// engine's own parser does: VAR=value before the command, `python -m vllm.entrypoints.openai.api_server`,
// short forms, underscores for dashes, --flag=value, unambiguous beginnings of names, JSON values whole or by
// dotted keys,
// --config FILE, and that the last of a repeated flag wins. Whatever is not understood is listed.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_COMMAND_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_COMMAND_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/request/launch_config_file.h"
#include "planner/request/launch_options.h"

namespace kvasir {

// A flag or variable that no table knows; the engine may refuse it.
struct UnknownFlag {
  std::string word;     // "--max-modle-len 4096"
  std::string nearest;  // a known name, without dashes; empty where none is near
  friend bool operator==(const UnknownFlag&, const UnknownFlag&) = default;
};

struct LaunchCommand {
  LaunchOptions options;
  std::vector<UnknownFlag> unknown;
  std::vector<std::string> not_about_cache;  // as they were written, in order
  std::vector<std::string> notes;            // flags given twice, completed names, words that were skipped
};

// `words` as a shell splits them; one word that holds blanks is split first (launch_split.h). InvalidArgument
// names the flag, the value and the fix: a value that the engine would not take, two names for one thing with
// a value each, no model, no engine in the command. `read_file` may be empty: --config is then refused.
[[nodiscard]] absl::StatusOr<LaunchCommand> ParseLaunchCommand(std::span<const std::string> words,
                                                               const ReadLaunchFile& read_file);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_COMMAND_H_
