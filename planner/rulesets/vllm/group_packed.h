// Groups whose layers have different pages and are packed side by side in each block.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_GROUP_PACKED_H_
#define KVASIR_PLANNER_RULESETS_VLLM_GROUP_PACKED_H_

#include <optional>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

using PackedGroups = std::optional<std::vector<EngineGroup>>;

// 2026-08, DeepSeek-V4: nullopt unless a sliding latent layer and two page sizes are there. One group of all
// latent layers, and the sliding latent ones cut to about as many tuples; any other layer is silently
// dropped, which a later check of the engine finds. AssertionError where latent layers are missing or of two
// types, or a sliding bucket is unbalanced.
[[nodiscard]] EngineResult<PackedGroups> GroupPacked202608(const SpecTable& table, const LayerSpecs& layers);

// 2026-11, any model: nullopt unless the layout puts blocks outermost and there are two page sizes. Draft
// flags are not set here. StopIteration where an unbalanced bucket must split into more groups than it has
// tuples.
[[nodiscard]] EngineResult<PackedGroups> GroupPacked202611(const SpecTable& table, const LayerSpecs& layers,
                                                           KvLayout layout);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_GROUP_PACKED_H_
