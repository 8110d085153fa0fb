// What a person sees when a question is refused or does not fit: the verdict, the reason, the ways out.
#ifndef KVASIR_PLANNER_CLI_SHOW_REFUSALS_H_
#define KVASIR_PLANNER_CLI_SHOW_REFUSALS_H_

#include "planner/cli/console.h"
#include "planner/cli/plan_question.h"
#include "planner/core/outcome.h"

namespace kvasir::cli {

void ShowRefusals(const Console& console, const PlanQuestion& question, const Refusals& refusals);
void ShowDoesNotFit(const Console& console, const DoesNotFit& outcome);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_SHOW_REFUSALS_H_
