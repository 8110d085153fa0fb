// A swept grid as a table with one column a length, and as CSV and JSON with one row a point.
#ifndef KVASIR_PLANNER_CLI_SHOW_SWEEP_H_
#define KVASIR_PLANNER_CLI_SHOW_SWEEP_H_

#include <string>
#include <vector>

#include "planner/cli/console.h"
#include "planner/questions/sweep.h"

namespace kvasir::cli {

void ShowSweep(const Console& console, const PlanQuestion& base, const SweepAxes& axes,
               const std::vector<SweepPoint>& points);

// With a heading; columns as the members of a point in kvasir.sweep/1 (docs/formats/plan_json.md).
[[nodiscard]] std::string SweepCsv(const std::vector<SweepPoint>& points);
// Schema kvasir.sweep/1.
[[nodiscard]] std::string SweepJson(const std::vector<SweepPoint>& points);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_SHOW_SWEEP_H_
