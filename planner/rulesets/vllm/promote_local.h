// Local attention planned as full attention: for a disabled hybrid manager, and where pages cannot be
// unified.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_PROMOTE_LOCAL_H_
#define KVASIR_PLANNER_RULESETS_VLLM_PROMOTE_LOCAL_H_

#include <optional>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/grouping_notes.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// Layers with their window or chunk recorded on a full spec; unchanged where all are of one type already.
// ValueError where they still are not, or two windows are recorded. TypeError in 2026-11 for a sliding latent
// layer, whose bounded_replay has no counterpart.
[[nodiscard]] EngineResult<LayerSpecs> PromoteLocal(SpecTable& table, const LayerSpecs& layers,
                                                    GroupingNotes& notes);

// The whole list for a disabled hybrid manager: 2026-11 promotes layers that DCP replicates apart from the
// others. `notes.log` gets the engine's warning where something was promoted.
[[nodiscard]] EngineResult<LayerSpecs> PromoteToOneType(SpecTable& table, const LayerSpecs& layers,
                                                        GroupingNotes& notes);

// One wrapper of all layers after promotion, for latent layers beside a sliding draft whose pages do not
// unify; nullopt where that does not apply.
[[nodiscard]] EngineResult<std::optional<std::vector<EngineGroup>>> FullAllocationGroups(
    SpecTable& table, const LayerSpecs& layers, GroupingNotes& notes);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_PROMOTE_LOCAL_H_
