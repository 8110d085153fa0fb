// The two caches of a hybrid model that the engine brings under one page size (hybrid_blocks.h): it asks the
// model's class for one state, and takes one attention layer.
#ifndef KVASIR_PLANNER_REQUEST_HYBRID_ROWS_H_
#define KVASIR_PLANNER_REQUEST_HYBRID_ROWS_H_

#include <optional>

#include "common/models/model_description.h"
#include "planner/request/engine_layer_specs.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir {

// The first recurrent state; nullopt: the model has none.
[[nodiscard]] std::optional<vllm::EngineSpec> StateSpecOf(const ModelDescription& model,
                                                          const LayerSetting& setting);

// One token of the attention layer; nullopt: the model has none.
[[nodiscard]] std::optional<vllm::EngineSpec> AlignedRowOf(const ModelDescription& model,
                                                           const LayerSetting& setting);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_HYBRID_ROWS_H_
