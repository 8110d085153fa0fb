// The two block sizes that the scheduler works with.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_SCHEDULER_BLOCKS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_SCHEDULER_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

struct SchedulerBlocks {
  std::int64_t scheduler = 0;  // tokens: every group's blocks end at its multiples
  std::int64_t hash = 0;       // tokens: the grain of prefix hashes
};

// `specs` has the spec of each group of the scheduler's configuration, in which a wrapper is its first
// member. One group: the configured block size times DCP. Several: their blocks' lcm; hashes take
// prefix_match_unit or the gcd where prefix caching or a connector reads them and every mamba group aligns
// its states. ValueError: a prefix_match_unit that the blocks do not agree with.
[[nodiscard]] EngineResult<SchedulerBlocks> ResolveSchedulerBlocks(const SpecTable& table,
                                                                   const std::vector<std::int32_t>& specs,
                                                                   const EngineConfig& config);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_SCHEDULER_BLOCKS_H_
