// A plan's arena as the engine uses it: for every pool the range of its block ids, how many tokens a column
// of its block table spans, and what a sequence of a given length needs. Pure arithmetic on a verified plan.
#ifndef KVASIR_WORKER_ENGINE_ARENA_LAYOUT_H_
#define KVASIR_WORKER_ENGINE_ARENA_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "common/base/units.h"
#include "common/geometry/block_address.h"
#include "common/geometry/context_shard.h"
#include "common/plan/plan.h"
#include "worker/engine/pass.h"

namespace kvasir {

// A rank's place in the arithmetic of one pool: {dcp, interleave, dcp_rank} where the pool is sharded over
// context, else {1, 1, 0}.
[[nodiscard]] ContextShard ShardOf(const PlanPool& pool, const RankPlace& place);

// The layer's page inside the pool's blocks. Requires a pool with block_tokens > 0.
[[nodiscard]] PageGeometry PageGeometryOf(const PlanPool& pool, const PlanLayer& layer);

// Ids that may be given out are first_block .. end_block - 1; the ids below lie in the null parent.
struct BlockRange {
  std::int64_t first_block = 0;
  std::int64_t end_block = 0;
  [[nodiscard]] bool Contains(BlockId id) const {
    return id.value() >= first_block && id.value() < end_block;
  }
};
[[nodiscard]] BlockRange BlockRangeOf(const Plan& plan, const PlanPool& pool);

// Tokens of the whole sequence per column of the pool's block table: block_tokens of each rank that shares
// the sequence. 0 for a per_sequence pool, whose columns are states.
[[nodiscard]] std::int64_t ColumnTokens(const Plan& plan, const PlanPool& pool);

// Columns of a sequence's block table for `limit` tokens (prompt + max_tokens): for a per_token or
// bounded_window pool one per ColumnTokens, for a per_sequence pool copies * parts. How many blocks stand in
// them at a time is admission's business (common/plan/admission.h); a column that a window has left holds
// block 0.
[[nodiscard]] std::int64_t ColumnsFor(const Plan& plan, const PlanPool& pool, std::int64_t limit);

// Columns [first, end) that a step over positions start .. start + rows - 1 (cut off at `limit`) reads or
// writes: in a bounded_window pool from the oldest token that row `start` sees; in any other pool all of
// them.
struct ColumnSpan {
  std::int64_t first = 0;
  std::int64_t end = 0;
};
[[nodiscard]] ColumnSpan LiveColumns(const Plan& plan, const PlanPool& pool, std::int64_t start,
                                     std::int64_t rows, std::int64_t limit);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_ARENA_LAYOUT_H_
