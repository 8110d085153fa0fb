#include "worker/engine/check_step.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/plan/admission.h"
#include "worker/engine/arena_layout.h"
#include "worker/engine/check_blocks.h"

namespace kvasir {
namespace {

std::string FieldOf(std::size_t sequence, const char* field) {
  return absl::StrFormat("sequences[%d].%s", sequence, field);
}

absl::Status Refuse(const std::string& field, std::int64_t value, const std::string& allowed) {
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s: %d, want %s", field, value, allowed));
}

absl::Status CheckKind(const Plan& plan, const StepPlan& step) {
  const auto count = static_cast<std::int64_t>(step.sequences.size());
  switch (step.kind) {
    case StepKind::kPrefill:
      if (count != 1) return Refuse("sequences", count, "1 in a prefill step");
      return absl::OkStatus();
    case StepKind::kSpeculate:
      if (plan.draft_tokens == 0) {
        return FieldError(reason::kConflictingFields, "kind",
                          "kind: speculate, but the plan has no draft; use decode");
      }
      break;
    case StepKind::kDecode:
      break;
    default:
      return Refuse("kind", static_cast<std::int64_t>(step.kind), "prefill, decode or speculate");
  }
  if (count < 1 || count > plan.max_requests) {
    return Refuse("sequences", count, absl::StrFormat("1 .. %d (max_requests)", plan.max_requests));
  }
  return absl::OkStatus();
}

absl::Status CheckPrefillChunk(const Plan& plan, std::size_t index, const StepSequence& sequence) {
  const auto count = static_cast<std::int64_t>(sequence.tokens.size());
  if (sequence.committed % plan.prefill_chunk != 0) {
    return Refuse(FieldOf(index, "committed"), sequence.committed,
                  absl::StrFormat("a multiple of prefill_chunk %d", plan.prefill_chunk));
  }
  if (count < 1 || count > plan.prefill_chunk || (!sequence.last_chunk && count != plan.prefill_chunk)) {
    return Refuse(FieldOf(index, "tokens"), count,
                  absl::StrFormat("%d tokens; fewer only in the last chunk", plan.prefill_chunk));
  }
  if (count >= sequence.limit - sequence.committed) {
    return Refuse(FieldOf(index, "tokens"), count,
                  absl::StrFormat("fewer than limit - committed = %d", sequence.limit - sequence.committed));
  }
  return absl::OkStatus();
}

absl::Status CheckTokens(std::int64_t vocab, std::size_t index, const StepSequence& sequence) {
  for (std::size_t i = 0; i < sequence.tokens.size(); ++i) {
    const std::int32_t token = sequence.tokens[i];
    if (token >= 0 && token < vocab) continue;
    return Refuse(absl::StrFormat("sequences[%d].tokens[%d]", index, i), token,
                  absl::StrFormat("0 .. %d (vocabulary)", vocab - 1));
  }
  return absl::OkStatus();
}

// Rows that a replay ring may hold: at most the drafts of one verify, behind the anchor, and none before a
// prefill chunk.
absl::Status CheckPending(const Plan& plan, StepKind kind, std::size_t index, const StepSequence& sequence) {
  const bool replays = plan.rollback == StateRollback::kReplay && kind != StepKind::kPrefill;
  const std::int64_t most =
      replays ? std::min(plan.draft_tokens, std::max<std::int64_t>(sequence.committed - 1, 0)) : 0;
  if (sequence.pending >= 0 && sequence.pending <= most) return absl::OkStatus();
  return Refuse(FieldOf(index, "pending"), sequence.pending, absl::StrFormat("0 .. %d", most));
}

absl::Status CheckLengths(const Plan& plan, StepKind kind, std::size_t index, const StepSequence& sequence) {
  if (sequence.id.value() < 0) return Refuse(FieldOf(index, "id"), sequence.id.value(), ">= 0");
  if (sequence.seat < 0 || sequence.seat >= plan.max_requests) {
    return Refuse(FieldOf(index, "seat"), sequence.seat,
                  absl::StrFormat("0 .. %d (below max_requests)", plan.max_requests - 1));
  }
  if (sequence.limit < 1 || sequence.limit > plan.context_tokens) {
    return Refuse(FieldOf(index, "limit"), sequence.limit,
                  absl::StrFormat("1 .. %d (context_tokens)", plan.context_tokens));
  }
  if (sequence.committed < 0 || sequence.committed >= sequence.limit) {
    return Refuse(FieldOf(index, "committed"), sequence.committed,
                  absl::StrFormat("0 .. %d (below limit)", sequence.limit - 1));
  }
  if (const absl::Status sampling = CheckSampling(sequence.sampling); !sampling.ok()) {
    return WithinField(absl::StrFormat("sequences[%d]", index), sampling);
  }
  if (kind == StepKind::kPrefill) return CheckPrefillChunk(plan, index, sequence);
  if (sequence.tokens.size() != 1) {
    return Refuse(FieldOf(index, "tokens"), static_cast<std::int64_t>(sequence.tokens.size()),
                  "1 token, the anchor");
  }
  if (sequence.last_chunk) return Refuse(FieldOf(index, "last_chunk"), 1, "0 outside a prefill step");
  return absl::OkStatus();
}

// Rows that the step may write or read around `committed` in this pool.
std::int64_t RowsOf(const Plan& plan, const PlanPool& pool, StepKind kind, const StepSequence& sequence) {
  if (kind == StepKind::kPrefill) return static_cast<std::int64_t>(sequence.tokens.size());
  return DemandOf(plan, pool).block_rows;
}

// A bounded window has left some columns and not yet reached others; they may hold block 0. Every column that
// this step can touch holds a real block.
absl::Status CheckColumns(const Plan& plan, const PlanPool& pool, StepKind kind, const std::string& field,
                          const StepSequence& sequence) {
  const std::vector<BlockId>& blocks = sequence.blocks[static_cast<std::size_t>(pool.id.value())];
  const std::int64_t columns = ColumnsFor(plan, pool, sequence.limit);
  if (static_cast<std::int64_t>(blocks.size()) != columns) {
    return Refuse(field, static_cast<std::int64_t>(blocks.size()),
                  absl::StrFormat("%d columns for limit %d", columns, sequence.limit));
  }
  const BlockRange range = BlockRangeOf(plan, pool);
  const std::int64_t rows = RowsOf(plan, pool, kind, sequence);
  const ColumnSpan live = LiveColumns(plan, pool, sequence.committed, rows, sequence.limit);
  for (std::int64_t c = 0; c < columns; ++c) {
    const BlockId block = blocks[static_cast<std::size_t>(c)];
    const bool idle = c < live.first || c >= live.end;
    if (range.Contains(block) || (idle && block.value() == 0)) continue;
    return Refuse(absl::StrFormat("%s[%d]", field, c), block.value(),
                  absl::StrFormat("a block %d .. %d", range.first_block, range.end_block - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckTables(const Plan& plan, const StepPlan& step, std::size_t index) {
  const StepSequence& sequence = step.sequences[index];
  if (sequence.blocks.size() != plan.pools.size()) {
    return Refuse(FieldOf(index, "blocks"), static_cast<std::int64_t>(sequence.blocks.size()),
                  absl::StrFormat("one list for each of %d pools", plan.pools.size()));
  }
  for (const PlanPool& pool : plan.pools) {
    const std::string field = absl::StrFormat("sequences[%d].blocks[%s]", index, pool.name);
    KVASIR_RETURN_IF_ERROR(CheckColumns(plan, pool, step.kind, field, sequence));
  }
  return absl::OkStatus();
}

// No two sequences of the step have one id, or one seat.
absl::Status CheckDistinct(const StepPlan& step, const char* what,
                           const std::function<std::int64_t(const StepSequence&)>& value_of) {
  std::vector<std::int64_t> values;
  values.reserve(step.sequences.size());
  for (const StepSequence& sequence : step.sequences) values.push_back(value_of(sequence));
  std::sort(values.begin(), values.end());
  const auto twice = std::adjacent_find(values.begin(), values.end());
  if (twice == values.end()) return absl::OkStatus();
  return FieldError(
      reason::kDuplicateItem, "sequences",
      absl::StrFormat("sequences: %s %d stands there twice, want distinct %ss", what, *twice, what));
}

}  // namespace

absl::Status CheckStep(const Plan& plan, std::int64_t vocab, const StepPlan& step) {
  KVASIR_RETURN_IF_ERROR(CheckKind(plan, step));
  KVASIR_RETURN_IF_ERROR(CheckDistinct(step, "id", [](const StepSequence& s) { return s.id.value(); }));
  KVASIR_RETURN_IF_ERROR(CheckDistinct(step, "seat", [](const StepSequence& s) { return s.seat; }));
  for (std::size_t i = 0; i < step.sequences.size(); ++i) {
    KVASIR_RETURN_IF_ERROR(CheckLengths(plan, step.kind, i, step.sequences[i]));
    KVASIR_RETURN_IF_ERROR(CheckPending(plan, step.kind, i, step.sequences[i]));
    KVASIR_RETURN_IF_ERROR(CheckTokens(vocab, i, step.sequences[i]));
    KVASIR_RETURN_IF_ERROR(CheckTables(plan, step, i));
  }
  return CheckBlocks(plan, step);
}

}  // namespace kvasir
