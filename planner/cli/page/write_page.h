// --html FILE: asks what the page shows beside the outcome, and writes it.
#ifndef KVASIR_PLANNER_CLI_PAGE_WRITE_PAGE_H_
#define KVASIR_PLANNER_CLI_PAGE_WRITE_PAGE_H_

#include "absl/status/status.h"
#include "planner/cli/command_line.h"
#include "planner/cli/plan_json.h"
#include "planner/cli/plan_question.h"
#include "planner/core/outcome.h"

namespace kvasir::cli {

// InvalidArgument: an empty name, or beside a question whose answer is no plan of ours.
[[nodiscard]] absl::Status CheckPageFlag(const CommandLine& line);

// Writes the file that --html names, in place. Unavailable: it cannot be written; the message names it.
[[nodiscard]] absl::Status WritePage(const CommandLine& line, const PlanQuestion& question,
                                     const PlanOutcome& outcome, const Extras& extras);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_PAGE_WRITE_PAGE_H_
