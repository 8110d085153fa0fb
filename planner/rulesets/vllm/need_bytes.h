// What one request of the maximum length needs, and the longest length that memory allows.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_NEED_BYTES_H_
#define KVASIR_PLANNER_RULESETS_VLLM_NEED_BYTES_H_

#include <cstdint>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/pool_bytes.h"

namespace kvasir::vllm {

// Bytes of one layer for one request of `length` tokens (vllm_rules.md, section 1). AssertionError: a sliding
// cache under context parallelism.
[[nodiscard]] EngineResult<std::int64_t> RequestBytes(const SpecTable& table, std::int32_t spec,
                                                      const EngineConfig& config, std::int64_t length);

// Blocks that a request takes of a group: of a wrapper the most that a member needs.
[[nodiscard]] EngineResult<std::int64_t> RequestBlocks(const SpecTable& table, const EngineGroup& group,
                                                       const EngineConfig& config, std::int64_t length);

// Bytes that one request of `length` tokens needs of a worker's pool; 0 without groups. `shape` is that of
// `groups`.
[[nodiscard]] EngineResult<std::int64_t> NeededBytes(const SpecTable& table,
                                                     const std::vector<EngineGroup>& groups,
                                                     const PoolShape& shape, const EngineConfig& config,
                                                     std::int64_t length);

// The largest length in [1, longest] whose needed bytes are at most `memory`, by the engine's bisection; 0 if
// 1 token needs more.
[[nodiscard]] EngineResult<std::int64_t> LongestFitting(const SpecTable& table,
                                                        const std::vector<EngineGroup>& groups,
                                                        const PoolShape& shape, const EngineConfig& config,
                                                        std::int64_t longest, std::int64_t memory);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_NEED_BYTES_H_
