// Merging the layers of one group: their specs by merge_specs.h, and refusals that name the layers.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_MERGE_LAYERS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_MERGE_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/grouping_notes.h"
#include "planner/rulesets/vllm/merge_specs.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// MergeSpecs of the layers' specs; a refusal also has the first layers with the two specs.
[[nodiscard]] MergeResult MergeLayers(const SpecTable& table, const LayerSpecs& layers);

// "full: head_size is 128 (model.layers.0) and 64 (model.layers.1)". `names` are the case's layer names;
// layers that the refusal does not know are left out.
[[nodiscard]] std::string MergeRefusalText(const SpecTable& table, const CannotMerge& refusal,
                                           const std::vector<EngineLayer>& names);
[[nodiscard]] std::string MergeRefusalText(const SpecTable& table, const MergeRaises& refusal,
                                           const std::vector<EngineLayer>& names);

// The merged spec's id, or the failure that escapes where nobody catches it.
[[nodiscard]] EngineResult<std::int32_t> InternMerged(SpecTable& table, const LayerSpecs& layers,
                                                      const std::vector<EngineLayer>& names);

// The engine's "are all layers uniform": true or false, or the ValueError that escapes. `notes`, if given,
// learns of a refusal.
[[nodiscard]] EngineResult<bool> IsSpecUniform(const SpecTable& table, const LayerSpecs& layers,
                                               GroupingNotes* notes = nullptr);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_MERGE_LAYERS_H_
