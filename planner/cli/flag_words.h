// Refusals and remedies speak of fields of the request; on the command line they speak of flags.
#ifndef KVASIR_PLANNER_CLI_FLAG_WORDS_H_
#define KVASIR_PLANNER_CLI_FLAG_WORDS_H_

#include <string>
#include <string_view>

namespace kvasir::cli {

// "set topology.dcp to 1" -> "set --dcp to 1". Fields without a flag stay as they are.
[[nodiscard]] std::string InFlagWords(std::string_view text);

// The flag that sets a field, with its dashes, or the field itself.
[[nodiscard]] std::string FlagOf(std::string_view field);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_FLAG_WORDS_H_
