#include "planner/core/attribution.h"

#include <algorithm>
#include <map>
#include <string>

#include "common/base/checked_math.h"
#include "common/geometry/context_shard.h"
#include "planner/core/capacity.h"

namespace kvasir {
namespace {

// All sums stay below the arena, since the load was admitted into it.
using Owners = std::map<std::string, std::int64_t>;

// Rows of one sequence that the fullest rank keeps.
std::int64_t RowsOf(const Plan& plan, const PlanPool& pool, const PoolDemand& demand) {
  if (pool.lifetime.kind == LifetimeKind::kBoundedWindow) {
    return std::min(plan.context_tokens, pool.lifetime.window + demand.block_rows - 1);
  }
  if (!pool.sharded) return plan.context_tokens;
  return LocalLength({.ranks = plan.topology.dcp, .interleave = plan.topology.interleave, .rank = 0},
                     plan.context_tokens);
}

// Adds the group's pages and returns their bytes for `requests` sequences.
std::int64_t AddGroup(const Plan& plan, const PlanPool& pool, const PlanGroup& group,
                      const PoolDemand& demand, std::int64_t requests, Owners& owners) {
  std::int64_t payload = 0;
  std::int64_t speculative = 0;
  for (const PlanLayer& layer : group.layers) {
    if (layer.layout.kind == LayoutKind::kState) {
      const std::int64_t state = StateBytes(layer.layout);
      payload += state;
      speculative += pool.lifetime.copies * layer.page_bytes - state;
    } else {
      payload += RowsOf(plan, pool, demand) * RowBytes(layer.layout);
    }
  }
  owners["payload." + group.name] = requests * payload;
  owners["speculative." + group.name] = requests * speculative;
  return requests * (payload + speculative);
}

// Returns the parents that the pool takes.
std::int64_t AddPool(const Plan& plan, const PlanPool& pool, std::int64_t requests, Owners& owners) {
  const PoolDemand demand = DemandOf(plan, pool);
  const std::int64_t blocks = requests * BlocksForSequence(demand, plan.context_tokens);
  const std::int64_t prefill = BlocksForPrefill(demand, plan.prefill_chunk);
  std::int64_t used = 0;
  for (const PlanGroup& group : pool.groups) used += AddGroup(plan, pool, group, demand, requests, owners);
  owners["padding." + pool.name] = blocks * pool.block_bytes - used;
  owners["prefill." + pool.name] = prefill * pool.block_bytes;
  owners["slack." + pool.name] = (blocks + prefill) * (pool.stride_bytes - pool.block_bytes);
  const std::int64_t parents = CeilDiv(blocks + prefill, pool.blocks_per_parent);
  owners["partial_parent." + pool.name] =
      (parents * pool.blocks_per_parent - blocks - prefill) * pool.stride_bytes;
  return parents;
}

bool AlwaysListed(const std::string& owner) {
  return owner.starts_with("payload.") || owner == "null_parent" || owner == "unassigned";
}

}  // namespace

std::vector<OwnedBytes> Attribute(const Plan& plan) {
  Owners owners;
  const std::int64_t requests = CapacityAt(plan, plan.context_tokens).requests;
  std::int64_t parents = 1;
  for (const PlanPool& pool : plan.pools) parents += AddPool(plan, pool, requests, owners);
  owners["null_parent"] = plan.parent_bytes.value();
  owners["free_parents"] = (plan.parents - parents) * plan.parent_bytes.value();
  owners["unassigned"] = plan.arena_bytes.value() - plan.parents * plan.parent_bytes.value();
  std::vector<OwnedBytes> out;
  for (const auto& [owner, bytes] : owners) {
    if (bytes != 0 || AlwaysListed(owner)) out.push_back({.owner = owner, .bytes = Bytes(bytes)});
  }
  return out;
}

}  // namespace kvasir
