// Ways out of a refusal that were tried: the question is asked again with one or two flags changed, and what
// the rules then accept is offered.
#ifndef KVASIR_PLANNER_CLI_REMEDY_SEARCH_H_
#define KVASIR_PLANNER_CLI_REMEDY_SEARCH_H_

#include <string>
#include <vector>

#include "planner/cli/plan_question.h"
#include "planner/core/outcome.h"
#include "planner/core/refusal.h"

namespace kvasir::cli {

// "--draft-backend tokenspeed --kv-cache-dtype fp8". Fewest changes first, a handful at most; empty where no
// backend and no other context parallelism helps, or where the refusals are not about them.
[[nodiscard]] std::vector<std::string> FindRemedies(const PlanQuestion& question,
                                                    const std::vector<Refusal>& refusals);

// Adds to a question that does not fit what only its options can change: more context parallelism, fp8
// caches. Each was planned again and fits; best first, before the planner's own remedies.
void AddFitRemedies(const PlanQuestion& question, DoesNotFit& outcome);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_REMEDY_SEARCH_H_
