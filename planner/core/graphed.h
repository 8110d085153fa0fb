// Stage 6: the graphs to capture: every pass at every number of requests, with the groups it crosses. The
// same for all rulesets. Causality is not repeated here: a graph names groups, and each group has one
// BehaviourKey.
#ifndef KVASIR_PLANNER_CORE_GRAPHED_H_
#define KVASIR_PLANNER_CORE_GRAPHED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/plan.h"
#include "planner/core/sized.h"

namespace kvasir {

struct Graphed {
  Sized sized;
  std::vector<PlanGraph> graphs;  // by (pass, query_rows, bucket)
};

// 1, 2, 4 ... below max_requests, then max_requests itself.
[[nodiscard]] std::vector<std::int64_t> BucketsUpTo(std::int64_t max_requests);

// target_decode q = 1; with a draft also target_verify and draft_context q = N + 1, and draft_block with the
// rows of the draft's block.
[[nodiscard]] Graphed AddGraphs(Sized sized);
[[nodiscard]] std::string ToText(const Graphed& graphed);
// Internal: a graph of one role names a group of the other, or not all of its own, or the largest bucket is
// missing.
[[nodiscard]] absl::Status Verify(const Graphed& graphed);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_GRAPHED_H_
