// Whether layers need the same number of token slots, so that one block table can serve them whatever their
// pages.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_SAME_TYPE_H_
#define KVASIR_PLANNER_RULESETS_VLLM_SAME_TYPE_H_

#include <optional>

#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// The engine's is_uniform_type: equal block sizes (2026-11: and DCP sharding), then a question to the first
// layer's spec alone; for mixes of a class and its subclass the answer therefore depends on the order.
// AssertionError where the first spec has no registered base or a page cannot be read; StopIteration without
// layers.
[[nodiscard]] EngineResult<bool> IsSameType(const SpecTable& table, const LayerSpecs& layers);

// Whether IsSameType's question to `first` accepts `other`.
[[nodiscard]] EngineResult<bool> AcceptsAsSameType(const SpecTable& table, std::int32_t first,
                                                   std::int32_t other);

// The wrapper if the layers are of one type, else nullopt.
[[nodiscard]] EngineResult<std::optional<UniformTypeSpecs>> WrapSameType(const SpecTable& table,
                                                                         const LayerSpecs& layers);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_SAME_TYPE_H_
