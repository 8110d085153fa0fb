// What to say when nothing fits: by how much, because of which pool, and what would.
#ifndef KVASIR_PLANNER_RULESETS_NATIVE_DOES_NOT_FIT_H_
#define KVASIR_PLANNER_RULESETS_NATIVE_DOES_NOT_FIT_H_

#include <vector>

#include "planner/core/outcome.h"
#include "planner/core/packed.h"

namespace kvasir::native {

// `variants` are the places in packed.variants that the request allows; none of them fits. Everything that is
// offered was planned again: another rollback, fewer requests, a shorter context, more memory, in this order.
[[nodiscard]] DoesNotFit ExplainMisfit(const Packed& packed, const std::vector<std::size_t>& variants);

}  // namespace kvasir::native

#endif  // KVASIR_PLANNER_RULESETS_NATIVE_DOES_NOT_FIT_H_
