// Hidden-state layers: each a group of its own, its page padded to the common one.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_GROUP_HIDDEN_STATES_H_
#define KVASIR_PLANNER_RULESETS_VLLM_GROUP_HIDDEN_STATES_H_

#include <string>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/grouping_notes.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// `groups` with one more group for each layer of `hidden`. Its block is the largest divisor of all groups'
// blocks whose tokens fit the common page, at least one token; where not even that fits, 2026-11 first
// multiplies every group's block and page, and 2026-08 leaves a page that no later read accepts.
// AssertionError for unequal pages.
[[nodiscard]] EngineResult<std::vector<EngineGroup>> AppendHiddenStates(SpecTable& table,
                                                                        std::vector<EngineGroup> groups,
                                                                        const LayerSpecs& hidden,
                                                                        const std::vector<EngineLayer>& names,
                                                                        GroupingNotes& notes);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_GROUP_HIDDEN_STATES_H_
