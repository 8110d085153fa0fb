// The capacity that the engine prints. The engine divides doubles here; this is the one file that follows it.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_CONCURRENCY_H_
#define KVASIR_PLANNER_RULESETS_VLLM_CONCURRENCY_H_

#include <cstdint>

#include "planner/rulesets/vllm/engine_failure.h"

namespace kvasir::vllm {

struct Capacity {
  double max_concurrency = 0;  // requests of the maximum length
  std::int64_t tokens = 0;     // max_concurrency * max_model_len, truncated
};

// num_blocks / request_blocks. The null block is not subtracted. ZeroDivisionError where a request takes no
// block.
[[nodiscard]] EngineResult<Capacity> PrintedCapacity(std::int64_t num_blocks, std::int64_t request_blocks,
                                                     std::int64_t max_model_len);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_CONCURRENCY_H_
