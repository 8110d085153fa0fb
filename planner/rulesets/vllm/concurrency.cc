#include "planner/rulesets/vllm/concurrency.h"

#include "planner/rulesets/vllm/exact.h"

namespace kvasir::vllm {

EngineResult<Capacity> PrintedCapacity(std::int64_t num_blocks, std::int64_t request_blocks,
                                       std::int64_t max_model_len) {
  if (request_blocks == 0) {
    return EngineFailure{EngineStage::kConcurrency, EngineErrorKind::kZeroDivisionError,
                         "a request takes no block of any group, so the engine divides by zero"};
  }
  // Python divides two integers with one rounding; below 2^53 so does this. Beyond, the operands round first.
  const double concurrency = static_cast<double>(num_blocks) / static_cast<double>(request_blocks);
  const double tokens = concurrency * static_cast<double>(max_model_len);
  if (tokens >= static_cast<double>(kExactMax)) {
    return EngineFailure{EngineStage::kConcurrency, EngineErrorKind::kTooLarge,
                         "the capacity is beyond 2^62 tokens"};
  }
  return Capacity{concurrency, static_cast<std::int64_t>(tokens)};
}

}  // namespace kvasir::vllm
