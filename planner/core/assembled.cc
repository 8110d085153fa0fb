#include "planner/core/assembled.h"

#include <utility>

#include "planner/core/attribution.h"

namespace kvasir {
namespace {

PlanLayer LayerOf(const LayerSpec& spec, const PlacedPage& page, StateRollback rollback) {
  PlanLayer layer{.id = spec.id,
                  .name = spec.name,
                  .layout = spec.layout,
                  .part = page.part,
                  .offset_bytes = page.offset_bytes,
                  .page_bytes = page.page_bytes};
  // A plan's layout says what the page holds.
  if (rollback != StateRollback::kReplay) layer.layout.ring.clear();
  return layer;
}

PlanPool PoolOf(const Sized& sized, std::size_t place, std::int32_t& next_group) {
  const GroupedPool& grouped = sized.packed.grouped.pools[place];
  const PackedPool& packed = sized.chosen().pools[place];
  const SizedPool& size = sized.pools[place];
  PlanPool pool{.id = PoolId(static_cast<std::int32_t>(place)),
                .name = grouped.name,
                .lifetime = packed.lifetime,
                .sharded = grouped.key.second,
                .block_tokens = size.block.block_tokens,
                .parts = size.block.parts,
                .block_bytes = size.block.block_bytes,
                .stride_bytes = size.stride_bytes,
                .blocks_per_parent = size.blocks_per_parent,
                .groups = {}};
  std::size_t page = 0;
  for (const GroupedGroup& group : grouped.groups) {
    PlanGroup& out = pool.groups.emplace_back();
    out.id = GroupId(next_group++);
    out.name = group.name;
    out.behaviour = sized.packed.grouped.layer(group.layers.front()).behaviour;
    for (const std::int32_t at : group.layers) {
      out.layers.push_back(
          LayerOf(sized.packed.grouped.layer(at), size.pages[page++], sized.chosen().rollback));
    }
  }
  return pool;
}

}  // namespace

Plan Assemble(const Graphed& graphed, std::string_view ruleset) {
  const Sized& sized = graphed.sized;
  const PlanRequest& request = sized.packed.request();
  Plan plan;
  plan.ruleset = std::string(ruleset);
  plan.topology = request.topology;
  plan.target = request.target.ref;
  if (request.draft.has_value()) plan.draft = request.draft->ref;
  plan.draft_tokens = request.draft_tokens;
  plan.rollback = sized.chosen().rollback;
  plan.context_tokens = request.context_tokens;
  plan.max_requests = request.max_requests;
  plan.prefill_chunk = request.prefill_chunk;
  plan.arena_bytes = Bytes(sized.arena_bytes());
  plan.parent_bytes = Bytes(sized.parent_bytes);
  plan.parents = sized.parents;
  std::int32_t next_group = 0;
  for (std::size_t i = 0; i < sized.pools.size(); ++i) plan.pools.push_back(PoolOf(sized, i, next_group));
  plan.graphs = graphed.graphs;
  plan.attribution = Attribute(plan);
  return plan;
}

}  // namespace kvasir
