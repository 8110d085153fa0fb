// The block tables of running sequences: reserves the worst case of a sequence in every pool at once, moves
// the blocks of bounded windows along, and gives everything back. Rank 0 only; host arithmetic.
#ifndef KVASIR_WORKER_ENGINE_SEQUENCE_TABLES_H_
#define KVASIR_WORKER_ENGINE_SEQUENCE_TABLES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/units.h"
#include "common/plan/plan.h"
#include "worker/engine/block_pool.h"

namespace kvasir {

struct SequenceTable {
  std::int64_t limit = 0;                     // prompt + max_tokens
  std::vector<std::vector<BlockId>> columns;  // [pool][column]; block 0 where a window holds nothing
  std::vector<std::vector<BlockId>> idle;     // [pool]: held, but in no column now; bounded_window only
};

class SequenceTables {
 public:
  // Takes the chunk reserve of every bounded_window pool. ResourceExhausted if the arena cannot hold even
  // that.
  static absl::StatusOr<SequenceTables> Create(const Plan& plan);

  // Reserves `limit` tokens in every pool. InvalidArgument where an empty arena could not hold the sequence,
  // ResourceExhausted where it cannot now; both name the pool and the shortfall in blocks.
  absl::StatusOr<SequenceTable> Reserve(std::int64_t limit);
  // Before a step over positions start .. start + rows - 1: every column it touches gets a block, with the
  // help of the chunk reserve while a prefill chunk is in flight.
  void Place(SequenceTable& table, std::int64_t start, std::int64_t rows);
  // After it: columns that the window has left are emptied, and what was borrowed goes back to the reserve.
  void Settle(SequenceTable& table, std::int64_t committed);
  void Release(SequenceTable& table);

  // After Reserve said ResourceExhausted for `limit` tokens: moves the blocks of one parent where that helps
  // to admit the sequence (ChooseMove), here and in `running`, which are all tables that are held. The caller
  // has the bytes copied as compaction.h says, and tries again in the next step. nullopt: no move helps now.
  std::optional<ParentMove> Compact(std::int64_t limit, std::span<SequenceTable* const> running);

  [[nodiscard]] std::vector<ParentId> TakeParentsToZero() { return pools_.TakeParentsToZero(); }
  [[nodiscard]] std::int64_t free_parents() const { return pools_.free_parents(); }
  [[nodiscard]] std::int64_t used_blocks(PoolId pool) const { return pools_.used_blocks(pool); }

 private:
  explicit SequenceTables(const Plan& plan);
  [[nodiscard]] std::vector<std::int64_t> CountsFor(std::int64_t limit) const;
  void ReturnBorrowed(const SequenceTable& table, std::size_t pool, std::vector<BlockId>& held);

  Plan plan_;
  BlockPools pools_;
  std::vector<std::int64_t> reserve_;        // blocks of the chunk reserve, by pool
  std::vector<std::vector<BlockId>> spare_;  // of it, not borrowed now
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_SEQUENCE_TABLES_H_
