// What the engine would admit of the same request, as one line of our own plan's capacity table.
#ifndef KVASIR_PLANNER_CLI_ENGINE_LINE_H_
#define KVASIR_PLANNER_CLI_ENGINE_LINE_H_

#include <optional>
#include <vector>

#include "planner/cli/plan_question.h"
#include "planner/cli/show_plan.h"
#include "planner/core/report.h"

namespace kvasir::cli {

// "vLLM 2026-11": requests of each context of `capacity`, with snapshots for rejected tokens and without a
// prefix cache; the remark names padding layers and blocks, or how the engine fails. nullopt where there is
// no such launch (planner/questions/engine_modes.h).
[[nodiscard]] std::optional<Alternative> EngineLine(const PlanQuestion& question,
                                                    const std::vector<CapacityRow>& capacity);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_ENGINE_LINE_H_
