#include "worker/engine/arena_layout.h"

#include <algorithm>

#include "common/base/checked_math.h"

namespace kvasir {

ContextShard ShardOf(const PlanPool& pool, const RankPlace& place) {
  if (!pool.sharded) return ContextShard{};
  return ContextShard{
      .ranks = place.topology.dcp, .interleave = place.topology.interleave, .rank = place.dcp_rank()};
}

PageGeometry PageGeometryOf(const PlanPool& pool, const PlanLayer& layer) {
  return PageGeometry{.stride_bytes = pool.stride_bytes,
                      .layer_offset_bytes = layer.offset_bytes,
                      .block_tokens = pool.block_tokens,
                      .row_bytes = RowBytes(layer.layout)};
}

BlockRange BlockRangeOf(const Plan& plan, const PlanPool& pool) {
  return BlockRange{.first_block = pool.blocks_per_parent,
                    .end_block = plan.parents * pool.blocks_per_parent};
}

std::int64_t ColumnTokens(const Plan& plan, const PlanPool& pool) {
  return pool.block_tokens * (pool.sharded ? plan.topology.dcp : 1);
}

std::int64_t ColumnsFor(const Plan& plan, const PlanPool& pool, std::int64_t limit) {
  if (pool.lifetime.kind == LifetimeKind::kPerSequence) return pool.lifetime.copies * pool.parts;
  return CeilDiv(limit, ColumnTokens(plan, pool));
}

ColumnSpan LiveColumns(const Plan& plan, const PlanPool& pool, std::int64_t start, std::int64_t rows,
                       std::int64_t limit) {
  if (pool.lifetime.kind != LifetimeKind::kBoundedWindow) {
    return ColumnSpan{.first = 0, .end = ColumnsFor(plan, pool, limit)};
  }
  const std::int64_t column = ColumnTokens(plan, pool);
  const std::int64_t oldest = std::max<std::int64_t>(0, start - pool.lifetime.window + 1);
  const std::int64_t newest = std::min(start + rows, limit) - 1;
  return ColumnSpan{.first = oldest / column, .end = newest / column + 1};
}

}  // namespace kvasir
