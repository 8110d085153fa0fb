// Re-derives a plan's invariants from its numbers alone, sharing no code with the planner that made it. The
// planner runs it on every plan, and a worker before it allocates: a peer may send anything.
#ifndef KVASIR_COMMON_PLAN_VERIFY_H_
#define KVASIR_COMMON_PLAN_VERIFY_H_

#include "absl/status/status.h"
#include "common/plan/plan.h"

namespace kvasir {

// InvalidArgument naming the first broken invariant, the field and both values. Checks limits, unique ids and
// names, page disjointness inside blocks, blocks inside parents, parents inside the arena, stride and
// alignment, P == blocks_per_parent * stride for every pool, groups of one behaviour each, equal lifetime and
// sharding inside a pool, graphs naming existing groups of the pass's role, buckets, and the attribution's
// sum.
[[nodiscard]] absl::Status VerifyPlan(const Plan& plan);

}  // namespace kvasir

#endif  // KVASIR_COMMON_PLAN_VERIFY_H_
