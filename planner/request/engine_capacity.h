// The capacity that the engine prints at start, by release: the formula of the token figure and the form of
// the lines changed (engine_release.h).
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_CAPACITY_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_CAPACITY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/request/engine_release.h"
#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/engine_plan.h"

namespace kvasir {

// What does not depend on the number of blocks.
struct CapacityRule {
  std::int64_t blocks_per_request = 0;  // of one request of max_model_len, over all groups
  std::int64_t groups = 0;
  std::int64_t least_block = 0;    // tokens, over the groups
  std::int64_t context_ranks = 1;  // dcp x pcp
  std::int64_t max_model_len = 0;  // tokens
};

struct PrintedCapacity {
  std::int64_t num_blocks = 0;
  std::int64_t tokens = 0;
  double concurrency = 0;  // requests of max_model_len
};

// nullopt for a plan that failed before its concurrency, or without groups.
[[nodiscard]] std::optional<CapacityRule> CapacityRuleOf(const vllm::EngineCase& engine_case,
                                                         const vllm::EnginePlan& plan);

// Doubles are divided and cut as the engine does it. Requires rule.blocks_per_request > 0.
[[nodiscard]] PrintedCapacity CapacityOf(const CapacityRule& rule, EngineRelease release,
                                         std::int64_t num_blocks);

// "GPU KV cache size: 1,360,384 tokens", "Maximum concurrency for 202,752 tokens per request: 6.71x".
[[nodiscard]] std::vector<std::string> CapacityLines(const CapacityRule& rule, EngineRelease release,
                                                     const PrintedCapacity& capacity);

// "1,360,384".
[[nodiscard]] std::string WithCommas(std::int64_t value);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_CAPACITY_H_
