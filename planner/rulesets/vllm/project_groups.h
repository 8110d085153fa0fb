// The part of the global groups that one worker holds.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_PROJECT_GROUPS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_PROJECT_GROUPS_H_

#include <cstddef>
#include <vector>

#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// Every group stays, with the worker's layers only. A wrapper shrinks to them, unless none is left: then the
// engine keeps the whole wrapper. The draft's flag stays with a layer only. `layers_total` is that of the
// case.
[[nodiscard]] std::vector<EngineGroup> ProjectGroups(const std::vector<EngineGroup>& groups,
                                                     const LayerSpecs& worker_layers,
                                                     std::size_t layers_total);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_PROJECT_GROUPS_H_
