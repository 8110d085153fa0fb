#include "worker/engine/block_pool.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {

BlockPools::BlockPools(const Plan& plan) : parents_(plan.parents), touched_(1) {
  for (const PlanPool& pool : plan.pools) {
    pools_.push_back(PoolState{.name = pool.name, .blocks_per_parent = pool.blocks_per_parent, .free = {}});
  }
}

absl::StatusOr<std::vector<std::vector<BlockId>>> BlockPools::Allocate(std::span<const std::int64_t> counts) {
  KVASIR_RETURN_IF_ERROR(Fits(counts, free_parents(), /*when_empty=*/false));
  std::vector<std::vector<BlockId>> blocks(pools_.size());
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) {
    blocks[pool].reserve(static_cast<std::size_t>(counts[pool]));
    for (std::int64_t i = 0; i < counts[pool]; ++i) blocks[pool].emplace_back(TakeBlock(pool));
    std::sort(blocks[pool].begin(), blocks[pool].end());
  }
  return blocks;
}

void BlockPools::Free(PoolId pool, std::span<const BlockId> blocks) {
  const auto index = static_cast<std::size_t>(pool.value());
  KVASIR_CHECK(pool.value() >= 0 && index < pools_.size());
  PoolState& state = pools_[index];
  for (const BlockId block : blocks) {
    const std::int64_t parent = block.value() / state.blocks_per_parent;
    KVASIR_CHECK(parent > 0 && parent < static_cast<std::int64_t>(touched_.size()));
    ParentState& home = touched_[static_cast<std::size_t>(parent)];
    KVASIR_CHECK(home.pool == index && home.used > 0);
    KVASIR_CHECK(state.free.insert(block.value()).second);
    --state.used;
    if (--home.used == 0) ReturnParent(parent);
  }
}

void BlockPools::Move(const ParentMove& move) {
  KVASIR_CHECK(move.parent.value() > 0 && move.parent.value() < static_cast<std::int64_t>(touched_.size()));
  KVASIR_CHECK(touched_[static_cast<std::size_t>(move.parent.value())].used ==
               static_cast<std::int64_t>(move.blocks.size()));
  PoolState& state = pools_[static_cast<std::size_t>(move.pool.value())];
  std::vector<BlockId> from;
  for (const ParentMove::Block& block : move.blocks) {
    KVASIR_CHECK(block.from.value() / state.blocks_per_parent == move.parent.value());
    const std::int64_t home = block.to.value() / state.blocks_per_parent;
    KVASIR_CHECK(home != move.parent.value() && state.free.erase(block.to.value()) == 1);
    ++state.used;
    ++touched_[static_cast<std::size_t>(home)].used;
    from.push_back(block.from);
  }
  Free(move.pool, from);
}

std::vector<ParentId> BlockPools::TakeParentsToZero() {
  std::vector<ParentId> parents;
  parents.reserve(to_zero_.size());
  for (const std::int64_t parent : to_zero_) parents.emplace_back(parent);
  to_zero_.clear();
  return parents;
}

std::int64_t BlockPools::free_parents() const {
  return parents_ - static_cast<std::int64_t>(touched_.size()) + static_cast<std::int64_t>(returned_.size());
}

std::int64_t BlockPools::used_blocks(PoolId pool) const {
  return pools_[static_cast<std::size_t>(pool.value())].used;
}

absl::Status BlockPools::FitsWhenEmpty(std::span<const std::int64_t> counts) const {
  return Fits(counts, parents_ - 1, /*when_empty=*/true);
}

bool BlockPools::FitsNow(std::span<const std::int64_t> counts) const {
  return Fits(counts, free_parents(), /*when_empty=*/false).ok();
}

std::vector<HeldParent> BlockPools::held_parents() const {
  std::vector<HeldParent> held;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (!touched_[i].pool.has_value()) continue;
    held.push_back({.parent = ParentId(static_cast<std::int64_t>(i)),
                    .pool = PoolId(static_cast<std::int32_t>(*touched_[i].pool)),
                    .used = touched_[i].used});
  }
  return held;
}

std::int64_t BlockPools::blocks_per_parent(PoolId pool) const {
  return pools_[static_cast<std::size_t>(pool.value())].blocks_per_parent;
}

const std::set<std::int64_t>& BlockPools::free_blocks(PoolId pool) const {
  return pools_[static_cast<std::size_t>(pool.value())].free;
}

// Pools are served in order, so a pool may count on the parents that those before it leave.
absl::Status BlockPools::Fits(std::span<const std::int64_t> counts, std::int64_t parents,
                              bool when_empty) const {
  KVASIR_CHECK(counts.size() == pools_.size());
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    const PoolState& pool = pools_[i];
    const std::int64_t held = when_empty ? 0 : static_cast<std::int64_t>(pool.free.size());
    const std::int64_t missing = std::max<std::int64_t>(0, counts[i] - held);
    const std::int64_t takes = CeilDiv(missing, pool.blocks_per_parent);
    if (takes > parents) {
      const std::int64_t free = held + parents * pool.blocks_per_parent;
      return MakeError({.code = absl::StatusCode::kResourceExhausted,
                        .reason = reason::kOutOfBlocks,
                        .message = absl::StrFormat("pool %s: short by %d blocks: %d needed, %d free",
                                                   pool.name, counts[i] - free, counts[i], free)});
    }
    parents -= takes;
  }
  return absl::OkStatus();
}

std::int64_t BlockPools::TakeBlock(std::size_t pool) {
  PoolState& state = pools_[pool];
  if (state.free.empty()) TakeParent(pool);
  const std::int64_t block = *state.free.begin();
  state.free.erase(state.free.begin());
  ++state.used;
  ++touched_[static_cast<std::size_t>(block / state.blocks_per_parent)].used;
  return block;
}

void BlockPools::TakeParent(std::size_t pool) {
  std::int64_t parent = 0;
  if (!returned_.empty()) {
    // Returned parents lie below all untouched ones.
    parent = *returned_.begin();
    returned_.erase(returned_.begin());
  } else {
    parent = static_cast<std::int64_t>(touched_.size());
    KVASIR_CHECK(parent < parents_);
    touched_.emplace_back();
  }
  ParentState& state = touched_[static_cast<std::size_t>(parent)];
  if (state.last.has_value() && *state.last != pool) to_zero_.insert(parent);
  state.pool = pool;
  state.last = pool;
  const std::int64_t per_parent = pools_[pool].blocks_per_parent;
  for (std::int64_t i = 0; i < per_parent; ++i) {
    pools_[pool].free.insert(pools_[pool].free.end(), parent * per_parent + i);
  }
}

void BlockPools::ReturnParent(std::int64_t parent) {
  ParentState& state = touched_[static_cast<std::size_t>(parent)];
  PoolState& pool = pools_[*state.pool];
  const std::int64_t first = parent * pool.blocks_per_parent;
  pool.free.erase(pool.free.lower_bound(first), pool.free.lower_bound(first + pool.blocks_per_parent));
  state.pool.reset();
  returned_.insert(parent);
}

}  // namespace kvasir
