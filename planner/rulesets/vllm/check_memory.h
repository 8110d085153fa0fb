// The engine's memory checks: what an override makes of memory, the length that fits, and whether one request
// does.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_CHECK_MEMORY_H_
#define KVASIR_PLANNER_RULESETS_VLLM_CHECK_MEMORY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/engine_plan.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

struct MemoryFit {
  std::optional<EngineFailure> failure = {};
  std::int64_t max_model_len = 0;         // tokens, lowered by auto fit
  std::vector<std::int64_t> memory = {};  // bytes, one a worker: available, or what an override amounts to
  std::vector<EngineWorkerNumbers> per_worker = {};
};

// `projected` has each worker's groups, `available` its bytes. One block, the null block, is set aside before
// a request is measured; allocation later uses all of `memory`. ValueError: nothing left, less than one
// request needs, or no length that fits; what reading a page or sizing a request raises.
[[nodiscard]] MemoryFit FitWorkers(const SpecTable& table,
                                   const std::vector<std::vector<EngineGroup>>& projected,
                                   EngineConfig config, const std::vector<std::int64_t>& available);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_CHECK_MEMORY_H_
