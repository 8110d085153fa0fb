// Long lists of layer names, short: "target.layers.3, target.layers.4, target.layers.7" -> "target layers
// 3-4, 7".
#ifndef KVASIR_PLANNER_CLI_SUBJECT_WORDS_H_
#define KVASIR_PLANNER_CLI_SUBJECT_WORDS_H_

#include <string>
#include <vector>

#include "planner/core/refusal.h"

namespace kvasir::cli {

// Layer names of one model are joined into ranges (at most a dozen, then a count); other subjects stay as
// they are.
[[nodiscard]] std::vector<std::string> ShortSubjects(const std::vector<std::string>& subjects);

// The refusal's sentence with short subjects, in the words of the command line.
[[nodiscard]] std::string RefusalSentence(const Refusal& refusal);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_SUBJECT_WORDS_H_
