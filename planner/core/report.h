// The sidecar of a plan: what people and schedulers ask about it. Derived from the plan, never part of its
// id.
#ifndef KVASIR_PLANNER_CORE_REPORT_H_
#define KVASIR_PLANNER_CORE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/plan/plan.h"

namespace kvasir {

// Full-length sequences of `context_tokens` at a time.
struct CapacityRow {
  std::int64_t context_tokens = 0;
  std::int64_t requests = 0;             // admitted into an empty arena
  std::int64_t guaranteed_requests = 0;  // under any churn, of those that wait: (pools + 1) parents fewer
  Bytes bytes_per_request;               // per rank: its blocks at their stride
  friend bool operator==(const CapacityRow&, const CapacityRow&) = default;
};

// One way to keep recurrent state that was considered.
struct RollbackOption {
  StateRollback rollback = StateRollback::kNone;
  bool chosen = false;
  bool possible = false;              // false: some layer declares no ring, or no size admits the request
  std::vector<CapacityRow> capacity;  // at the report's contexts; empty where not possible
  friend bool operator==(const RollbackOption&, const RollbackOption&) = default;
};

// How the sizes were found.
struct SizeChoice {
  std::int64_t layouts_compared = 0;  // (block_tokens, parts, blocks per parent) tuples that were costed
  std::int64_t cost_512 = 0;  // worst cost of section 2.1's objective; 512 would be no overhead at all
  Bytes parent_bytes_max;     // the bound on P
  friend bool operator==(const SizeChoice&, const SizeChoice&) = default;
};

struct Report {
  std::vector<CapacityRow> capacity;        // by context
  std::int64_t longest_context_tokens = 0;  // of one request alone in this arena; at most the model's limit
  bool longest_is_model_limit = false;
  std::vector<RollbackOption> rollback_options;  // empty without recurrent state or without a draft
  SizeChoice sizes;
  friend bool operator==(const Report&, const Report&) = default;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_REPORT_H_
