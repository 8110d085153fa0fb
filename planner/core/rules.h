// The checks of stage 2, by topic; each adds its refusals. Private to planner/core.
#ifndef KVASIR_PLANNER_CORE_RULES_H_
#define KVASIR_PLANNER_CORE_RULES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/core/canonical.h"
#include "planner/core/refusal.h"
#include "planner/core/validated.h"

namespace kvasir::rules {

using Found = std::vector<Refusal>;

// Numbers within limits, names, digests. False: lists are too long to look at.
[[nodiscard]] bool CheckForm(const PlanRequest& request, Found& found);
// Ids, keys that contradict each other, too many pools.
void CheckLayers(const PlanRequest& request, Found& found);
// Ranks, divisibility, what may be sharded.
void CheckTopology(const PlanRequest& request, Found& found);
// Target and draft together, rollback.
void CheckModels(const PlanRequest& request, Found& found);
// What kernels can do. Fills the common page sizes of each pool.
void CheckBackends(const PlanRequest& request, Found& found,
                   std::map<PoolKey, std::vector<std::int64_t>>& page_tokens);

// VALUE_OUT_OF_RANGE unless min <= value <= max. `subject` may be empty.
void CheckRange(std::string_view field, std::int64_t value, std::int64_t min, std::int64_t max,
                std::string_view subject, Found& found);
[[nodiscard]] PoolKey PoolKeyOf(const LayerSpec& layer);
[[nodiscard]] bool HasLayers(const PlanRequest& request, Role role);
[[nodiscard]] std::int64_t CountLayers(const PlanRequest& request, Role role);

}  // namespace kvasir::rules

#endif  // KVASIR_PLANNER_CORE_RULES_H_
