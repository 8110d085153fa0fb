// Groups for layers of equal pages: buckets of layers whose specs merge, cut into groups of about one size.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_GROUP_UNIFORM_PAGES_H_
#define KVASIR_PLANNER_RULESETS_VLLM_GROUP_UNIFORM_PAGES_H_

#include <string>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/grouping_notes.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// Requires equal pages. One group a bucket's share of group_size layers, every k-th layer together so that
// pipeline stages stay balanced. ValueError without layers; what merging a group raises. `names` are the
// case's layer names; `notes.log` gets a line for each padded bucket.
[[nodiscard]] EngineResult<std::vector<EngineGroup>> GroupUniformPages(SpecTable& table,
                                                                       const LayerSpecs& layers,
                                                                       const std::vector<EngineLayer>& names,
                                                                       GroupingNotes& notes);

// Layers i, i + stride, i + 2 * stride ... of `layers`.
[[nodiscard]] std::vector<std::int32_t> Strided(const std::vector<std::int32_t>& layers, std::size_t i,
                                                std::size_t stride);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_GROUP_UNIFORM_PAGES_H_
