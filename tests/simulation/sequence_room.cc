#include "tests/simulation/sequence_room.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "worker/engine/sequence_tables.h"

namespace kvasir::testing {
namespace {

class FungibleRoom final : public SequenceRoom {
 public:
  explicit FungibleRoom(const Plan& plan) : loads_(LoadsOf(plan)), free_(plan.arena_bytes.value()) {
    for (const PoolLoad& load : loads_) {
      free_ -= BlocksForPrefill(load.demand, plan.prefill_chunk) * load.stride_bytes;
    }
  }
  bool Reserve(std::size_t sequence, std::int64_t tokens) override {
    const std::int64_t bytes = ReservedBytes(loads_, tokens);
    if (bytes > free_) return false;
    free_ -= bytes;
    KVASIR_CHECK(held_.emplace(sequence, bytes).second);
    return true;
  }
  void Release(std::size_t sequence) override {
    const auto found = held_.find(sequence);
    KVASIR_CHECK(found != held_.end());
    free_ += found->second;
    held_.erase(found);
  }
  std::int64_t MoveOneParent(std::int64_t /*tokens*/) override { return 0; }
  [[nodiscard]] std::int64_t StrandedParents(std::int64_t /*tokens*/) const override { return 0; }

 private:
  std::vector<PoolLoad> loads_;
  std::int64_t free_;
  std::map<std::size_t, std::int64_t> held_;
};

class PoolRoom final : public SequenceRoom {
 public:
  PoolRoom(const Plan& plan, SequenceTables tables, bool compacts)
      : plan_(plan), loads_(LoadsOf(plan)), tables_(std::move(tables)), compacts_(compacts) {}

  bool Reserve(std::size_t sequence, std::int64_t tokens) override {
    absl::StatusOr<SequenceTable> table = tables_.Reserve(tokens);
    if (!table.ok()) {
      KVASIR_CHECK(table.status().code() == absl::StatusCode::kResourceExhausted);
      return false;
    }
    KVASIR_CHECK(held_.emplace(sequence, *std::move(table)).second);
    return true;
  }
  void Release(std::size_t sequence) override {
    const auto found = held_.find(sequence);
    KVASIR_CHECK(found != held_.end());
    tables_.Release(found->second);
    held_.erase(found);
  }
  std::int64_t MoveOneParent(std::int64_t tokens) override {
    if (!compacts_) return 0;
    std::vector<SequenceTable*> running;
    running.reserve(held_.size());
    for (auto& [sequence, table] : held_) running.push_back(&table);
    const std::optional<ParentMove> move = tables_.Compact(tokens, running);
    if (!move.has_value()) return 0;
    return static_cast<std::int64_t>(move->blocks.size()) *
           plan_.pools[static_cast<std::size_t>(move->pool.value())].block_bytes;
  }
  // Counted here from what is used, apart from the engine's own arithmetic.
  [[nodiscard]] std::int64_t StrandedParents(std::int64_t tokens) const override {
    std::int64_t parents = plan_.parents - 1;
    for (std::size_t p = 0; p < loads_.size(); ++p) {
      const std::int64_t blocks =
          tables_.used_blocks(plan_.pools[p].id) + BlocksForSequence(loads_[p].demand, tokens);
      parents -= CeilDiv(blocks, loads_[p].blocks_per_parent);
    }
    return parents < 0 ? 0 : parents + 1;
  }

 private:
  const Plan& plan_;
  std::vector<PoolLoad> loads_;
  SequenceTables tables_;
  bool compacts_;
  std::map<std::size_t, SequenceTable> held_;
};

}  // namespace

std::unique_ptr<SequenceRoom> MakeRoom(const Plan& plan, Allocator allocator) {
  if (allocator == Allocator::kFungible) return std::make_unique<FungibleRoom>(plan);
  absl::StatusOr<SequenceTables> tables = SequenceTables::Create(plan);
  KVASIR_CHECK(tables.ok());
  return std::make_unique<PoolRoom>(plan, *std::move(tables), allocator == Allocator::kCompacted);
}

std::int64_t ReservedBytes(std::span<const PoolLoad> loads, std::int64_t tokens) {
  std::int64_t bytes = 0;
  for (const PoolLoad& load : loads) {
    bytes += BlocksForSequence(load.demand, tokens) * load.stride_bytes;
  }
  return bytes;
}

}  // namespace kvasir::testing
