// A small strict parser for `--flag value`, `--flag=value`, switches and positional words. Every command
// states its flags as a table, from which the help text is made too.
#ifndef KVASIR_PLANNER_CLI_COMMAND_LINE_H_
#define KVASIR_PLANNER_CLI_COMMAND_LINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvasir::cli {

struct Flag {
  std::string_view name;   // without the dashes
  std::string_view value;  // what stands after it, for the help text; empty: a switch
  std::string_view help;
};

// How many positional words a command takes.
struct Words {
  std::size_t min = 0;
  std::size_t max = 0;
  std::string_view what = "a word";  // is missing, where there are too few
};

class CommandLine {
 public:
  // InvalidArgument: an unknown flag (with the nearest known one), a flag given twice or without its value, a
  // value for a switch, too few or too many words. After "--" everything is a word.
  static absl::StatusOr<CommandLine> Parse(std::span<const Flag> flags, Words words,
                                           std::span<const std::string> args);

  [[nodiscard]] bool Has(std::string_view flag) const { return values_.contains(std::string(flag)); }
  [[nodiscard]] std::optional<std::string> Value(std::string_view flag) const;
  [[nodiscard]] std::string ValueOr(std::string_view flag, std::string_view fallback) const;
  // A decimal 64-bit integer, or the fallback where the flag is not given.
  [[nodiscard]] absl::StatusOr<std::int64_t> IntOr(std::string_view flag, std::int64_t fallback) const;
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> words_;
};

// One line a flag, for the help text.
[[nodiscard]] std::string FlagsHelp(std::span<const Flag> flags);

// The candidate with the fewest edits to `word`, or empty where none is near.
[[nodiscard]] std::string Nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_COMMAND_LINE_H_
