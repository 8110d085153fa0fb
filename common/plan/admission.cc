#include "common/plan/admission.h"

#include <algorithm>

#include "common/base/checked_math.h"

namespace kvasir {

PoolDemand DemandOf(const Plan& plan, const PlanPool& pool) {
  PoolDemand demand{.lifetime = pool.lifetime,
                    .context_ranks = pool.sharded ? plan.topology.dcp : 1,
                    .block_tokens = pool.block_tokens,
                    .parts = pool.parts,
                    .block_rows = 1};
  for (const PlanGroup& group : pool.groups) {
    demand.block_rows = std::max(demand.block_rows, group.behaviour.block_rows);
  }
  return demand;
}

std::int64_t BlocksForSequence(const PoolDemand& demand, std::int64_t tokens) {
  if (demand.lifetime.kind == LifetimeKind::kPerSequence) return demand.lifetime.copies * demand.parts;
  const std::int64_t all = CeilDiv(tokens, demand.block_tokens * demand.context_ranks);
  if (demand.lifetime.kind == LifetimeKind::kPerToken) return all;
  const std::int64_t live = demand.lifetime.window + demand.block_rows - 1;
  // A run of n rows touches at most ceil((n - 1) / block) + 1 blocks, wherever it starts.
  return std::min(all, CeilDiv(live - 1, demand.block_tokens) + 1);
}

std::int64_t BlocksForPrefill(const PoolDemand& demand, std::int64_t prefill_chunk) {
  if (demand.lifetime.kind != LifetimeKind::kBoundedWindow) return 0;
  return CeilDiv(prefill_chunk, demand.block_tokens);
}

}  // namespace kvasir
