// The engine's grouping: its attempts in their order, the first that applies decides.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_GROUP_LAYERS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_GROUP_LAYERS_H_

#include <string>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/grouping_notes.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// No layers, no groups. 1. A disabled hybrid manager promotes local attention. 2. All specs merge: one group.
// 3. One type: one wrapper. 4. 2026-08 packs DeepSeek-V4; 2026-11 shares slots (GLM-5.3). 5. 2026-11 packs
// where the layout puts blocks outermost. 6. Pages are unified, else full allocation is tried. 7. Groups of
// equal pages.
// 8. Hidden-state layers, one group each, at the end. 9. 2026-11 marks draft groups. The early returns mark
// none. `names` are the case's layer names.
[[nodiscard]] EngineResult<std::vector<EngineGroup>> GroupLayers(SpecTable& table, LayerSpecs layers,
                                                                 const EngineConfig& config,
                                                                 const std::vector<EngineLayer>& names,
                                                                 GroupingNotes& notes);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_GROUP_LAYERS_H_
