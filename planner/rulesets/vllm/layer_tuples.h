// The repeating pattern of a bucket of layers with several page sizes: a tuple takes one layer of each size.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_LAYER_TUPLES_H_
#define KVASIR_PLANNER_RULESETS_VLLM_LAYER_TUPLES_H_

#include <cstdint>
#include <vector>

#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// The layers of one page size, in order.
struct PageLayers {
  std::int64_t page = 0;  // bytes
  LayerSpecs layers = {};
};

// `layers` by page size, in order of first appearance. Fails where a page cannot be read.
[[nodiscard]] EngineResult<std::vector<PageLayers>> LayersByPage(const SpecTable& table,
                                                                 const LayerSpecs& layers);

// The largest number of layers with one page size: how often the pattern repeats. Requires at least one.
[[nodiscard]] std::int64_t TupleCount(const std::vector<PageLayers>& by_page);

// Whether each page size has equally many layers.
[[nodiscard]] bool IsBalanced(const std::vector<PageLayers>& by_page);

// The d in [lower, max(counts)] whose multiples waste least when every count is rounded up to one; the larger
// d wins a tie. `lower` if it is above all counts. Requires counts and `lower` positive.
[[nodiscard]] std::int64_t LeastPaddingSize(const std::vector<std::int64_t>& counts, std::int64_t lower);

// Tuples i, i + count, i + 2 * count ... of a bucket, flattened: the layers of group i of `count`. Layers
// beyond the shortest size belong to no tuple and are lost.
[[nodiscard]] LayerSpecs StridedTuples(const std::vector<PageLayers>& by_page, std::int64_t i,
                                       std::int64_t count);

// A group that wraps `members`. StopIteration, as in the engine, if there are none.
[[nodiscard]] EngineResult<EngineGroup> WrappedGroup(const SpecTable& table, const LayerSpecs& members);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_LAYER_TUPLES_H_
