// The layers of all workers as one list, and what the engine does to their specs before grouping.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_UNION_LAYERS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_UNION_LAYERS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// The id of each of the case's specs, constructed for the table's version.
[[nodiscard]] EngineResult<std::vector<std::int32_t>> InternSpecs(SpecTable& table,
                                                                  const EngineCase& engine_case);

// Each worker's layers with their specs. `specs` comes from InternSpecs.
[[nodiscard]] std::vector<LayerSpecs> LayersOfWorkers(const EngineCase& engine_case,
                                                      const std::vector<std::int32_t>& specs);

struct UnionLayers {
  LayerSpecs layers = {};
  std::optional<EngineFailure> conflict = {};  // AssertionError: one layer with two specs
};

// Worker order, then layer order; the first occurrence fixes place and spec.
[[nodiscard]] UnionLayers UnionOfWorkers(const EngineCase& engine_case,
                                         const std::vector<LayerSpecs>& worker_layers);

// ValueError for a kind without a registered manager; then every sliding spec learns how many tokens below
// its window speculative decoding keeps.
[[nodiscard]] std::optional<EngineFailure> PrepareForGrouping(SpecTable& table, const EngineCase& engine_case,
                                                              LayerSpecs& layers);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_UNION_LAYERS_H_
