#include "worker/engine/compaction.h"

#include <algorithm>

namespace kvasir {
namespace {

// A smaller share of its blocks is live; of equals the higher id, so that low parents stay full.
bool EmptiesBefore(const BlockPools& pools, const HeldParent& a, const HeldParent& b) {
  const std::int64_t share_a = a.used * pools.blocks_per_parent(b.pool);
  const std::int64_t share_b = b.used * pools.blocks_per_parent(a.pool);
  return share_a != share_b ? share_a < share_b : a.parent > b.parent;
}

bool HasRoomElsewhere(const BlockPools& pools, const HeldParent& held) {
  const auto free = static_cast<std::int64_t>(pools.free_blocks(held.pool).size());
  return free - (pools.blocks_per_parent(held.pool) - held.used) >= held.used;
}

ParentMove MoveOf(const BlockPools& pools, const HeldParent& held) {
  ParentMove move{.pool = held.pool, .parent = held.parent};
  const std::set<std::int64_t>& free = pools.free_blocks(held.pool);
  const std::int64_t per_parent = pools.blocks_per_parent(held.pool);
  auto to = free.begin();
  for (std::int64_t i = 0; i < per_parent; ++i) {
    const std::int64_t from = held.parent.value() * per_parent + i;
    if (free.contains(from)) continue;
    while (*to / per_parent == held.parent.value()) ++to;
    move.blocks.push_back({.from = BlockId(from), .to = BlockId(*to++)});
  }
  return move;
}

}  // namespace

std::optional<ParentMove> ChooseMove(const BlockPools& pools, std::span<const std::int64_t> counts,
                                     std::span<const ParentId> pinned) {
  if (pools.FitsNow(counts)) return std::nullopt;
  std::optional<HeldParent> best;
  for (const HeldParent& held : pools.held_parents()) {
    if (best.has_value() && !EmptiesBefore(pools, held, *best)) continue;
    if (!HasRoomElsewhere(pools, held)) continue;
    if (std::find(pinned.begin(), pinned.end(), held.parent) != pinned.end()) continue;
    best = held;
  }
  if (!best.has_value()) return std::nullopt;
  return MoveOf(pools, *best);
}

void Rename(const ParentMove& move, std::vector<BlockId>& blocks) {
  if (move.blocks.empty()) return;
  for (BlockId& block : blocks) {
    if (block < move.blocks.front().from || move.blocks.back().from < block) continue;  // most of them
    const auto found =
        std::lower_bound(move.blocks.begin(), move.blocks.end(), block,
                         [](const ParentMove::Block& moved, BlockId id) { return moved.from < id; });
    if (found != move.blocks.end() && found->from == block) block = found->to;
  }
}

}  // namespace kvasir
