// Equal pages for all layers: the engine carves every group's blocks from one pool of equal pages.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_UNIFY_PAGES_H_
#define KVASIR_PLANNER_RULESETS_VLLM_UNIFY_PAGES_H_

#include <string>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// Distinct page sizes of the layers, ascending. Fails where a page cannot be read.
[[nodiscard]] EngineResult<std::vector<std::int64_t>> PageSizes(const SpecTable& table,
                                                                const LayerSpecs& layers);

// Raises every page to the largest: a mamba page is padded; a divisor of the largest gets a longer block; the
// rest is padded where the version allows it (2026-08: the backend indexes by block stride; 2026-11: any
// attention but mla). NotImplementedError, naming the layer, where it is not; AssertionError where the new
// page is not the largest one after all; ZeroDivisionError at a page of no bytes. `names` are the case's
// layer names.
[[nodiscard]] EngineResult<LayerSpecs> UnifyPages(SpecTable& table, const LayerSpecs& layers,
                                                  const std::vector<EngineLayer>& names);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_UNIFY_PAGES_H_
