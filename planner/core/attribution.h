// Who owns each byte of a plan's arena; see assembled.h for the owners. Private to planner/core.
#ifndef KVASIR_PLANNER_CORE_ATTRIBUTION_H_
#define KVASIR_PLANNER_CORE_ATTRIBUTION_H_

#include <vector>

#include "common/plan/plan.h"

namespace kvasir {

// Sorted by owner; owners of nothing are left out except payload, null_parent and unassigned. `plan` is
// complete but for its attribution.
[[nodiscard]] std::vector<OwnedBytes> Attribute(const Plan& plan);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_ATTRIBUTION_H_
