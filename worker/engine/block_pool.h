// Blocks of all pools of one arena, in two levels: a pool takes its lowest free block, then the lowest free
// parent; a parent whose last block is freed returns at once. Deterministic: equal calls give equal ids.
// Parent 0 is the null parent and its blocks (0 .. blocks_per_parent - 1 of every pool) are never given out.
// Not thread-safe; no backend: rank 0 decides, all ranks follow.
#ifndef KVASIR_WORKER_ENGINE_BLOCK_POOL_H_
#define KVASIR_WORKER_ENGINE_BLOCK_POOL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/units.h"
#include "common/plan/plan.h"
#include "worker/engine/parent_move.h"

namespace kvasir {

// A parent that a pool holds, and how many of its blocks are given out: at least one.
struct HeldParent {
  ParentId parent;
  PoolId pool;
  std::int64_t used = 0;
};

class BlockPools {
 public:
  explicit BlockPools(const Plan& plan);

  // `counts[pool]` blocks of every pool, ascending ids, or nothing at all. ResourceExhausted names the first
  // pool that cannot be served after those before it, and its shortfall in blocks.
  absl::StatusOr<std::vector<std::vector<BlockId>>> Allocate(std::span<const std::int64_t> counts);
  // Gives back blocks that Allocate returned and that were not freed since; anything else is our own bug.
  void Free(PoolId pool, std::span<const BlockId> blocks);

  // Gives out the targets of `move` and frees its sources, so that the parent returns; anything but a move of
  // all blocks of a held parent to free blocks of its pool is our own bug. Whoever keeps ids renames them.
  void Move(const ParentMove& move);

  // Parents that carry another pool than before, ascending, each once; then forgets them. A parent's first
  // pool needs no zeroing, the arena starts zeroed.
  [[nodiscard]] std::vector<ParentId> TakeParentsToZero();

  [[nodiscard]] std::int64_t free_parents() const;
  [[nodiscard]] std::int64_t used_blocks(PoolId pool) const;
  // Whether `counts` would be served if nothing else were allocated; else what Allocate would say.
  [[nodiscard]] absl::Status FitsWhenEmpty(std::span<const std::int64_t> counts) const;
  // Whether Allocate would serve `counts` now.
  [[nodiscard]] bool FitsNow(std::span<const std::int64_t> counts) const;
  [[nodiscard]] std::vector<HeldParent> held_parents() const;  // ascending
  [[nodiscard]] std::int64_t blocks_per_parent(PoolId pool) const;
  // Of the parents that the pool holds; ascending.
  [[nodiscard]] const std::set<std::int64_t>& free_blocks(PoolId pool) const;

 private:
  struct PoolState {
    std::string name;
    std::int64_t blocks_per_parent = 1;
    std::set<std::int64_t> free;  // of the parents that the pool holds
    std::int64_t used = 0;
  };
  struct ParentState {
    std::optional<std::size_t> pool;  // holds it now
    std::optional<std::size_t> last;  // held it last, and left its bytes there
    std::int64_t used = 0;            // blocks given out
  };

  [[nodiscard]] absl::Status Fits(std::span<const std::int64_t> counts, std::int64_t parents,
                                  bool when_empty) const;
  std::int64_t TakeBlock(std::size_t pool);
  void TakeParent(std::size_t pool);
  void ReturnParent(std::int64_t parent);

  std::int64_t parents_;
  std::vector<PoolState> pools_;
  // Parents 0 .. touched_.size() - 1 have been used at least once (0: never given out); those above are free.
  std::vector<ParentState> touched_;
  std::set<std::int64_t> returned_;  // free parents below touched_.size()
  std::set<std::int64_t> to_zero_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_BLOCK_POOL_H_
