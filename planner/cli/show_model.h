// A model description as a table for people and as JSON (docs/formats/model_json.md).
#ifndef KVASIR_PLANNER_CLI_SHOW_MODEL_H_
#define KVASIR_PLANNER_CLI_SHOW_MODEL_H_

#include <cstdint>
#include <string>

#include "common/models/model_description.h"
#include "planner/cli/console.h"
#include "planner/cli/model_kinds.h"

namespace kvasir::cli {

// `kinds` are KindsOf(model, tp).
void ShowModel(const Console& console, const ModelDescription& model, const ModelKinds& kinds,
               std::int64_t tp);
[[nodiscard]] std::string ModelJson(const ModelDescription& model, const ModelKinds& kinds, std::int64_t tp);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_SHOW_MODEL_H_
