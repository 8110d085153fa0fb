#include "worker/engine/check_blocks.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/geometry/block_address.h"
#include "worker/engine/arena_layout.h"

namespace kvasir {
namespace {

absl::Status Refuse(const std::string& field, std::int64_t value, const std::string& allowed) {
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s: %d, want %s", field, value, allowed));
}

// A block of the step: which parent it lies in, and whose it is.
struct BlockUse {
  std::int64_t parent = 0;
  std::size_t pool = 0;
  std::int64_t block = 0;
  std::int64_t sequence = 0;
  bool holds_tokens = false;
  friend auto operator<=>(const BlockUse&, const BlockUse&) = default;
};

std::vector<BlockUse> BlockUses(const Plan& plan, const StepPlan& step) {
  std::vector<BlockUse> uses;
  for (const StepSequence& sequence : step.sequences) {
    for (std::size_t p = 0; p < plan.pools.size(); ++p) {
      // Column c starts at token c * column_tokens; a state (0 tokens) is there from the first token on.
      const std::int64_t column_tokens = ColumnTokens(plan, plan.pools[p]);
      const std::vector<BlockId>& blocks = sequence.blocks[p];
      for (std::size_t c = 0; c < blocks.size(); ++c) {
        if (blocks[c].value() == 0) continue;
        const std::int64_t first_token = static_cast<std::int64_t>(c) * column_tokens;
        uses.push_back(BlockUse{.parent = ParentOf(blocks[c].value(), plan.pools[p].blocks_per_parent),
                                .pool = p,
                                .block = blocks[c].value(),
                                .sequence = sequence.id.value(),
                                .holds_tokens = first_token < sequence.committed});
      }
    }
  }
  std::sort(uses.begin(), uses.end());
  return uses;
}

absl::Status CheckOwners(const Plan& plan, const std::vector<BlockUse>& uses) {
  for (std::size_t i = 1; i < uses.size(); ++i) {
    const BlockUse& a = uses[i - 1];
    const BlockUse& b = uses[i];
    if (a.parent != b.parent) continue;
    if (a.pool != b.pool) {
      return FieldError(
          reason::kConflictingFields, "sequences.blocks",
          absl::StrFormat(
              "blocks: parent %d holds block %d of pool %s and block %d of pool %s, want one pool per parent",
              a.parent, a.block, plan.pools[a.pool].name, b.block, plan.pools[b.pool].name));
    }
    if (a.block == b.block) {
      return FieldError(
          reason::kDuplicateItem, "sequences.blocks",
          absl::StrFormat("blocks: block %d of pool %s is given to sequence %d and to sequence %d, want one "
                          "owner and one column",
                          a.block, plan.pools[a.pool].name, a.sequence, b.sequence));
    }
  }
  return absl::OkStatus();
}

bool MovesTo(const StepPlan& step, const BlockUse& use) {
  if (!step.move.has_value() || static_cast<std::size_t>(step.move->pool.value()) != use.pool) return false;
  return std::any_of(step.move->blocks.begin(), step.move->blocks.end(),
                     [&use](const ParentMove::Block& block) { return block.to.value() == use.block; });
}

// Where committed tokens stand before the step, and whose they are: those of a block that moves, in the
// parent that it leaves. Ascending.
std::vector<std::pair<std::int64_t, std::int64_t>> Holders(const StepPlan& step,
                                                           const std::vector<BlockUse>& uses) {
  std::vector<std::pair<std::int64_t, std::int64_t>> holders;
  for (const BlockUse& use : uses) {
    if (!use.holds_tokens) continue;
    holders.emplace_back(MovesTo(step, use) ? step.move->parent.value() : use.parent, use.sequence);
  }
  std::sort(holders.begin(), holders.end());
  return holders;
}

absl::Status CheckZeroParents(const Plan& plan, const StepPlan& step, const std::vector<BlockUse>& uses) {
  if (step.zero_parents.empty()) return absl::OkStatus();
  const auto holders = Holders(step, uses);
  for (std::size_t i = 0; i < step.zero_parents.size(); ++i) {
    const std::int64_t parent = step.zero_parents[i].value();
    const std::string field = absl::StrFormat("zero_parents[%d]", i);
    if (parent < 1 || parent >= plan.parents) {
      return Refuse(field, parent, absl::StrFormat("1 .. %d", plan.parents - 1));
    }
    if (i > 0 && parent <= step.zero_parents[i - 1].value()) return Refuse(field, parent, "ascending ids");
    const auto holder = std::lower_bound(holders.begin(), holders.end(), std::pair{parent, std::int64_t{0}});
    if (holder != holders.end() && holder->first == parent) {
      return Refuse(field, parent,
                    absl::StrFormat("no parent that holds tokens of sequence %d", holder->second));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMovedBlocks(const Plan& plan, const PlanPool& pool, const ParentMove& move) {
  const BlockRange range = BlockRangeOf(plan, pool);
  const auto home = [&pool](BlockId block) { return ParentOf(block.value(), pool.blocks_per_parent); };
  std::vector<BlockId> targets;
  targets.reserve(move.blocks.size());
  for (std::size_t i = 0; i < move.blocks.size(); ++i) {
    const ParentMove::Block& block = move.blocks[i];
    const std::string field = absl::StrFormat("move.blocks[%d]", i);
    const bool ascending = i == 0 || move.blocks[i - 1].from < block.from;
    if (!range.Contains(block.from) || home(block.from) != move.parent.value() || !ascending) {
      return Refuse(field + ".from", block.from.value(),
                    absl::StrFormat("ascending blocks of parent %d", move.parent.value()));
    }
    if (!range.Contains(block.to) || home(block.to) == move.parent.value()) {
      return Refuse(field + ".to", block.to.value(),
                    absl::StrFormat("a block %d .. %d outside parent %d", range.first_block,
                                    range.end_block - 1, move.parent.value()));
    }
    targets.push_back(block.to);
  }
  std::sort(targets.begin(), targets.end());
  const auto twice = std::adjacent_find(targets.begin(), targets.end());
  if (twice == targets.end()) return absl::OkStatus();
  return Refuse("move.blocks", twice->value(), "distinct targets");
}

absl::Status CheckMove(const Plan& plan, const StepPlan& step, const std::vector<BlockUse>& uses) {
  if (!step.move.has_value()) return absl::OkStatus();
  const ParentMove& move = *step.move;
  const auto pools = static_cast<std::int64_t>(plan.pools.size());
  if (move.pool.value() < 0 || move.pool.value() >= pools) {
    return Refuse("move.pool", move.pool.value(), absl::StrFormat("0 .. %d", pools - 1));
  }
  if (move.parent.value() < 1 || move.parent.value() >= plan.parents) {
    return Refuse("move.parent", move.parent.value(), absl::StrFormat("1 .. %d", plan.parents - 1));
  }
  if (move.blocks.empty()) return Refuse("move.blocks", 0, "at least one block");
  const PlanPool& pool = plan.pools[static_cast<std::size_t>(move.pool.value())];
  KVASIR_RETURN_IF_ERROR(CheckMovedBlocks(plan, pool, move));
  const auto left = std::lower_bound(uses.begin(), uses.end(), BlockUse{.parent = move.parent.value()});
  if (left == uses.end() || left->parent != move.parent.value()) return absl::OkStatus();
  return Refuse(
      "move.parent", move.parent.value(),
      absl::StrFormat("a parent that no sequence uses after the move, as sequence %d does", left->sequence));
}

}  // namespace

absl::Status CheckBlocks(const Plan& plan, const StepPlan& step) {
  const std::vector<BlockUse> uses = BlockUses(plan, step);
  KVASIR_RETURN_IF_ERROR(CheckOwners(plan, uses));
  KVASIR_RETURN_IF_ERROR(CheckMove(plan, step, uses));
  return CheckZeroParents(plan, step, uses);
}

}  // namespace kvasir
