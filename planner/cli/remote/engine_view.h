// An engine's prediction as a service gives it: for people, and as JSON in the form of a prediction made
// here.
#ifndef KVASIR_PLANNER_CLI_REMOTE_ENGINE_VIEW_H_
#define KVASIR_PLANNER_CLI_REMOTE_ENGINE_VIEW_H_

#include <string>

#include "kvasir/plan/v1/engine.pb.h"
#include "planner/cli/console.h"

namespace kvasir::cli {

void ShowPrediction(const Console& console, const plan::v1::EnginePrediction& prediction);
// Schema kvasir.plan/1; members that only a planning process knows (assumptions, budget, topology) are left
// out.
[[nodiscard]] std::string PredictionJson(const plan::v1::EnginePrediction& prediction);
// 0 it fits, 3 it needs more memory than it has, 1 the engine fails for another reason.
[[nodiscard]] int PredictionExitCode(const plan::v1::EnginePrediction& prediction);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_REMOTE_ENGINE_VIEW_H_
