#include "worker/engine/sequence_tables.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/plan/admission.h"
#include "worker/engine/arena_layout.h"
#include "worker/engine/compaction.h"

namespace kvasir {
namespace {

bool IsWindow(const PlanPool& pool) { return pool.lifetime.kind == LifetimeKind::kBoundedWindow; }

// Empties the columns outside `live` into `idle`.
void CollectIdle(const ColumnSpan& live, std::vector<BlockId>& columns, std::vector<BlockId>& idle) {
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto column = static_cast<std::int64_t>(c);
    if ((column >= live.first && column < live.end) || columns[c].value() == 0) continue;
    idle.push_back(columns[c]);
    columns[c] = BlockId(0);
  }
}

// Exchanges blocks so that the reserve has the lowest ids: it then keeps to few parents, and does not hold
// those that sequences leave.
void KeepLowest(std::vector<BlockId>& reserve, std::vector<BlockId>& held) {
  const auto count = static_cast<std::ptrdiff_t>(reserve.size());
  held.insert(held.end(), reserve.begin(), reserve.end());
  std::sort(held.begin(), held.end());
  reserve.assign(held.begin(), held.begin() + count);
  held.erase(held.begin(), held.begin() + count);
}

}  // namespace

SequenceTables::SequenceTables(const Plan& plan)
    : plan_(plan), pools_(plan), reserve_(plan.pools.size()), spare_(plan.pools.size()) {
  for (std::size_t p = 0; p < plan_.pools.size(); ++p) {
    reserve_[p] = BlocksForPrefill(DemandOf(plan_, plan_.pools[p]), plan_.prefill_chunk);
  }
}

absl::StatusOr<SequenceTables> SequenceTables::Create(const Plan& plan) {
  SequenceTables tables(plan);
  KVASIR_ASSIGN_OR_RETURN(tables.spare_, tables.pools_.Allocate(tables.reserve_));
  return tables;
}

std::vector<std::int64_t> SequenceTables::CountsFor(std::int64_t limit) const {
  std::vector<std::int64_t> counts;
  counts.reserve(plan_.pools.size());
  for (const PlanPool& pool : plan_.pools) {
    counts.push_back(BlocksForSequence(DemandOf(plan_, pool), limit));
  }
  return counts;
}

absl::StatusOr<SequenceTable> SequenceTables::Reserve(std::int64_t limit) {
  const std::vector<std::int64_t> counts = CountsFor(limit);
  std::vector<std::int64_t> alone = reserve_;
  for (std::size_t p = 0; p < plan_.pools.size(); ++p) alone[p] += counts[p];
  if (const absl::Status never = pools_.FitsWhenEmpty(alone); !never.ok()) {
    return FieldError(reason::kValueOutOfRange, "max_tokens",
                      absl::StrFormat("prompt + max_tokens: %d tokens can never be admitted by this plan: %s",
                                      limit, std::string(never.message())));
  }
  SequenceTable table{.limit = limit, .columns = {}, .idle = {}};
  KVASIR_ASSIGN_OR_RETURN(table.columns, pools_.Allocate(counts));
  table.idle.resize(plan_.pools.size());
  for (std::size_t p = 0; p < plan_.pools.size(); ++p) {
    if (!IsWindow(plan_.pools[p])) continue;
    std::swap(table.columns[p], table.idle[p]);
    KeepLowest(spare_[p], table.idle[p]);
    table.columns[p].assign(static_cast<std::size_t>(ColumnsFor(plan_, plan_.pools[p], limit)), BlockId(0));
  }
  return table;
}

void SequenceTables::Place(SequenceTable& table, std::int64_t start, std::int64_t rows) {
  for (std::size_t p = 0; p < plan_.pools.size(); ++p) {
    if (!IsWindow(plan_.pools[p])) continue;
    const ColumnSpan live = LiveColumns(plan_, plan_.pools[p], start, rows, table.limit);
    CollectIdle(live, table.columns[p], table.idle[p]);
    for (std::int64_t c = live.first; c < live.end; ++c) {
      BlockId& block = table.columns[p][static_cast<std::size_t>(c)];
      if (block.value() != 0) continue;
      std::vector<BlockId>& from = table.idle[p].empty() ? spare_[p] : table.idle[p];
      KVASIR_CHECK(!from.empty());
      block = from.back();
      from.pop_back();
    }
  }
}

void SequenceTables::Settle(SequenceTable& table, std::int64_t committed) {
  for (std::size_t p = 0; p < plan_.pools.size(); ++p) {
    if (!IsWindow(plan_.pools[p])) continue;
    // The next step starts at `committed`; what lies before its window is never read again, and nothing
    // stands at or after it that a later step does not write first.
    ColumnSpan live = LiveColumns(plan_, plan_.pools[p], committed, 0, table.limit);
    live.end = std::max(live.end, live.first);
    CollectIdle(live, table.columns[p], table.idle[p]);
    ReturnBorrowed(table, p, table.idle[p]);
  }
}

void SequenceTables::Release(SequenceTable& table) {
  for (std::size_t p = 0; p < plan_.pools.size(); ++p) {
    std::vector<BlockId> held = std::move(table.idle[p]);
    CollectIdle(ColumnSpan{}, table.columns[p], held);
    if (IsWindow(plan_.pools[p])) {
      table.idle[p].clear();
      ReturnBorrowed(table, p, held);
      KeepLowest(spare_[p], held);
    }
    pools_.Free(plan_.pools[p].id, held);
  }
  table = SequenceTable{};
}

std::optional<ParentMove> SequenceTables::Compact(std::int64_t limit,
                                                  std::span<SequenceTable* const> running) {
  std::optional<ParentMove> move = ChooseMove(pools_, CountsFor(limit));
  if (!move.has_value()) return std::nullopt;
  pools_.Move(*move);
  const auto pool = static_cast<std::size_t>(move->pool.value());
  Rename(*move, spare_[pool]);
  for (SequenceTable* const table : running) {
    Rename(*move, table->columns[pool]);
    Rename(*move, table->idle[pool]);
  }
  return move;
}

// Moves from `held` to the reserve what the table holds (in columns and in `held`) beyond its own share.
void SequenceTables::ReturnBorrowed(const SequenceTable& table, std::size_t pool,
                                    std::vector<BlockId>& held) {
  std::int64_t total = static_cast<std::int64_t>(held.size());
  for (const BlockId block : table.columns[pool]) total += block.value() != 0 ? 1 : 0;
  const std::int64_t own = BlocksForSequence(DemandOf(plan_, plan_.pools[pool]), table.limit);
  for (std::int64_t extra = total - own; extra > 0; --extra) {
    KVASIR_CHECK(!held.empty());
    spare_[pool].push_back(held.back());
    held.pop_back();
  }
}

}  // namespace kvasir
