// What `kvasir solve` found, for people and for programs.
#ifndef KVASIR_PLANNER_CLI_SHOW_SOLUTION_H_
#define KVASIR_PLANNER_CLI_SHOW_SOLUTION_H_

#include <string>

#include "planner/cli/console.h"
#include "planner/questions/solve.h"

namespace kvasir::cli {

// `models`: the flags that name them. `kept`: other commands find the plan by its id.
void ShowSolution(const Console& console, const SolveQuestion& question, const std::string& models,
                  const SolveAnswer& answer, bool kept);

// Schema kvasir.solve/1 (docs/formats/plan_json.md).
[[nodiscard]] std::string SolutionJson(const SolveQuestion& question, const SolveAnswer& answer);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_SHOW_SOLUTION_H_
