// Storing what `kvasir plan` found, with the models that an apply sends along.
#ifndef KVASIR_PLANNER_CLI_KEEP_PLAN_H_
#define KVASIR_PLANNER_CLI_KEEP_PLAN_H_

#include "planner/cli/command_line.h"
#include "planner/cli/console.h"
#include "planner/cli/plan_question.h"
#include "planner/core/outcome.h"

namespace kvasir::cli {

// Whether other commands will find the plan by its id: the outcome is a plan, --no-save was not given, and it
// could be written. The plan is the answer; that it could not be kept is worth a warning on err only.
[[nodiscard]] bool KeepPlan(const Console& console, const CommandLine& line, const PlanQuestion& question,
                            const PlanOutcome& outcome);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_KEEP_PLAN_H_
