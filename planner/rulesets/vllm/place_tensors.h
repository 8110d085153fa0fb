// The tensors of one worker: which layers, how large, and where each page begins.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_PLACE_TENSORS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_PLACE_TENSORS_H_

#include <cstdint>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/pool_bytes.h"

namespace kvasir::vllm {

// Blocks and tensors for `groups` in `memory` bytes; without groups one block and no tensor. ValueError:
// 2026-11's layout cannot express pages of several sizes. AssertionError: no layer at all, or a padded page
// under a layout that puts heads outside. ZeroDivisionError: a page of no bytes.
[[nodiscard]] EngineResult<EngineWorkerPlan> PlaceTensors(const SpecTable& table,
                                                          std::vector<EngineGroup> groups,
                                                          const EngineConfig& config, std::int64_t memory);

// The plan of a worker lowered to `num_blocks`: 2026-08 scales tensors, 2026-11 places them again.
[[nodiscard]] EngineResult<EngineWorkerPlan> WithFewerBlocks(const SpecTable& table, EngineWorkerPlan plan,
                                                             const EngineConfig& config,
                                                             std::int64_t num_blocks);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_PLACE_TENSORS_H_
