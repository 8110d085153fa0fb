// 2026-11's tensors: runs of equal layers inside one allocation.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_PLACE_RUNS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_PLACE_RUNS_H_

#include <cstdint>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/pool_bytes.h"

namespace kvasir::vllm {

// A run for each spec of each group, all groups from byte 0. The layout is checked first.
[[nodiscard]] EngineResult<std::vector<EngineTensor>> PlaceRuns(const SpecTable& table,
                                                                const std::vector<EngineGroup>& groups,
                                                                KvLayout layout, std::int64_t bytes_per_block,
                                                                std::int64_t num_blocks);

// ValueError where the layout cannot express the pages of `groups`.
[[nodiscard]] EngineResult<bool> CheckLayout(const SpecTable& table, const std::vector<EngineGroup>& groups,
                                             KvLayout layout);

// GLM-5.3-Flash: a tensor for each layer; mamba layers in the mla layers' slots, tails in the indexers'.
[[nodiscard]] EngineResult<std::vector<EngineTensor>> PlaceSharedSlots(const SpecTable& table,
                                                                       const std::vector<EngineGroup>& groups,
                                                                       const SharedSlots& slots,
                                                                       std::int64_t bytes_per_block,
                                                                       std::int64_t num_blocks);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_PLACE_RUNS_H_
