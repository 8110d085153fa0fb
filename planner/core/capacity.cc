#include "planner/core/capacity.h"

#include <algorithm>
#include <limits>

#include "common/base/checked_math.h"
#include "planner/core/wide.h"

namespace kvasir {
namespace {

// Parents that `requests` sequences take; saturates.
std::int64_t ParentsFor(std::span<const PoolLoad> loads, std::int64_t requests, std::int64_t context,
                        std::int64_t prefill_chunk) {
  Wide parents = 0;
  for (const PoolLoad& load : loads) {
    parents += CeilDiv(BlocksForRequests(load, requests, context, prefill_chunk), load.blocks_per_parent);
  }
  return Saturated(parents);
}

}  // namespace

std::vector<PoolLoad> LoadsOf(const Plan& plan) {
  std::vector<PoolLoad> loads;
  loads.reserve(plan.pools.size());
  for (const PlanPool& pool : plan.pools) {
    loads.push_back({.demand = DemandOf(plan, pool),
                     .stride_bytes = pool.stride_bytes,
                     .blocks_per_parent = pool.blocks_per_parent});
  }
  return loads;
}

std::int64_t BlocksForRequests(const PoolLoad& load, std::int64_t requests, std::int64_t context,
                               std::int64_t prefill_chunk) {
  return Saturated(Wide{requests} * BlocksForSequence(load.demand, context) +
                   BlocksForPrefill(load.demand, prefill_chunk));
}

std::int64_t RequestsIn(std::span<const PoolLoad> loads, std::int64_t parents, std::int64_t context,
                        std::int64_t prefill_chunk) {
  // Each pool alone gives an upper bound; the answer lies below the least of them.
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  for (const PoolLoad& load : loads) {
    const Wide blocks = Wide{std::max<std::int64_t>(parents, 0)} * load.blocks_per_parent;
    high = std::min(high, Saturated(blocks / BlocksForSequence(load.demand, context)));
  }
  std::int64_t low = 0;
  if (parents < 0) return 0;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (ParentsFor(loads, middle, context, prefill_chunk) <= parents) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

CapacityRow CapacityAt(std::span<const PoolLoad> loads, std::int64_t parents, std::int64_t context,
                       std::int64_t prefill_chunk) {
  Wide bytes = 0;
  for (const PoolLoad& load : loads) {
    bytes += Wide{BlocksForSequence(load.demand, context)} * load.stride_bytes;
  }
  // Section 2.1: every pool may hold one parent that is not full, and one more is lost to moving blocks.
  const std::int64_t churn = static_cast<std::int64_t>(loads.size()) + 1;
  return {.context_tokens = context,
          .requests = RequestsIn(loads, parents - 1, context, prefill_chunk),
          .guaranteed_requests = RequestsIn(loads, parents - 1 - churn, context, prefill_chunk),
          .bytes_per_request = Bytes(Saturated(bytes))};
}

CapacityRow CapacityAt(const Plan& plan, std::int64_t context) {
  return CapacityAt(LoadsOf(plan), plan.parents, context, plan.prefill_chunk);
}

std::int64_t LongestContext(const Plan& plan, std::int64_t requests, std::int64_t limit) {
  const std::vector<PoolLoad> loads = LoadsOf(plan);
  std::int64_t low = 0;
  std::int64_t high = limit;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (ParentsFor(loads, requests, middle, plan.prefill_chunk) <= plan.parents - 1) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace kvasir
