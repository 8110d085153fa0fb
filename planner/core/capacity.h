// How many sequences an arena admits: integer arithmetic over pools, nothing else.
#ifndef KVASIR_PLANNER_CORE_CAPACITY_H_
#define KVASIR_PLANNER_CORE_CAPACITY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/admission.h"
#include "common/plan/plan.h"
#include "planner/core/report.h"

namespace kvasir {

struct PoolLoad {
  PoolDemand demand;
  std::int64_t stride_bytes = 0;
  std::int64_t blocks_per_parent = 1;
};

[[nodiscard]] std::vector<PoolLoad> LoadsOf(const Plan& plan);

// Blocks of one pool for `requests` sequences of `context` tokens and the prefill chunk in flight; saturates.
[[nodiscard]] std::int64_t BlocksForRequests(const PoolLoad& load, std::int64_t requests,
                                             std::int64_t context, std::int64_t prefill_chunk);
// The most sequences whose blocks fit into `parents` parents, the null parent not counted.
[[nodiscard]] std::int64_t RequestsIn(std::span<const PoolLoad> loads, std::int64_t parents,
                                      std::int64_t context, std::int64_t prefill_chunk);
// `parents` with the null parent.
[[nodiscard]] CapacityRow CapacityAt(std::span<const PoolLoad> loads, std::int64_t parents,
                                     std::int64_t context, std::int64_t prefill_chunk);
[[nodiscard]] CapacityRow CapacityAt(const Plan& plan, std::int64_t context);

// The longest sequence, up to `limit` tokens, of which `requests` are admitted; 0 if none is.
[[nodiscard]] std::int64_t LongestContext(const Plan& plan, std::int64_t requests, std::int64_t limit);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_CAPACITY_H_
