// Compaction of an arena: which parent to empty so that a sequence that was refused can be admitted, and
// where its blocks go (DESIGN section 2.1, placement). Pure decisions over the pools; nothing is copied here,
// and equal pools give equal moves.
//
// Who executes a move must copy each block on every rank after the zeroing of parents that changed their
// pool, since targets may stand in one of those, and before the parent is given out again, since it may then
// be zeroed: so between the TakeParentsToZero of a step and the next Allocate.
#ifndef KVASIR_WORKER_ENGINE_COMPACTION_H_
#define KVASIR_WORKER_ENGINE_COMPACTION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/units.h"
#include "worker/engine/block_pool.h"

namespace kvasir {

// The move for a sequence that waits for `counts[pool]` blocks of every pool: of the parents that are not in
// `pinned` and whose blocks have room in other parents of their pool, the one of whose blocks the smallest
// share is live; of equals the highest. Its blocks go to the lowest free ones. nullopt where the sequence
// fits as it is, and where no parent can be emptied. One move may not be enough: ask again after it. A move
// is made even where the sequence would still not fit, so that the steps in which it has to wait anyway are
// used: what is freed next is then enough sooner.
//
// A pool that has a parent's worth of free blocks can empty a parent. So without pinned parents, once this
// says nullopt every pool stands in as few parents as its blocks fill.
[[nodiscard]] std::optional<ParentMove> ChooseMove(const BlockPools& pools,
                                                   std::span<const std::int64_t> counts,
                                                   std::span<const ParentId> pinned = {});

// Follows the move in a list of blocks of its pool.
void Rename(const ParentMove& move, std::vector<BlockId>& blocks);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_COMPACTION_H_
