// Stage 1: one order for everything that came in any order, and the facts that follow at once.
//   layers by (id, name, registration index), backends by name, their lists and the taps ascending and
//   without repetitions, ranks by number, context lengths ascending; nothing is sharded where dcp is 1; a
//   remedy that came from the front end keeps its own order. Nothing is judged: duplicates and nonsense stay
//   for the next stage.
#ifndef KVASIR_PLANNER_CORE_CANONICAL_H_
#define KVASIR_PLANNER_CORE_CANONICAL_H_

#include <string>

#include "absl/status/status.h"
#include "planner/core/plan_request.h"

namespace kvasir {

struct Canonical {
  PlanRequest request;
  Bytes arena_bytes;  // the least over the ranks; 0 without ranks
};

[[nodiscard]] Canonical Canonicalize(PlanRequest request);
[[nodiscard]] std::string ToText(const Canonical& canonical);
// Internal: the order or the least is wrong.
[[nodiscard]] absl::Status Verify(const Canonical& canonical);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_CANONICAL_H_
