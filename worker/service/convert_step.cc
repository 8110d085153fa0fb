#include "worker/service/convert_step.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "worker/service/convert_fields.h"
#include "worker/service/convert_sampling.h"

namespace kvasir {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kPoolsMax = kLayersMax;
constexpr std::int64_t kParentsMax = std::int64_t{1} << 32;

absl::StatusOr<StepKind> ToKind(worker::v1::StepKind kind) {
  switch (kind) {
    case worker::v1::STEP_KIND_PREFILL:
      return StepKind::kPrefill;
    case worker::v1::STEP_KIND_DECODE:
      return StepKind::kDecode;
    case worker::v1::STEP_KIND_SPECULATE:
      return StepKind::kSpeculate;
    default:
      break;
  }
  return FieldError(reason::kUnknownValue, "kind",
                    absl::StrFormat("kind is %d; want PREFILL, DECODE or SPECULATE", static_cast<int>(kind)));
}

worker::v1::StepKind FromKind(StepKind kind) {
  switch (kind) {
    case StepKind::kPrefill:
      return worker::v1::STEP_KIND_PREFILL;
    case StepKind::kDecode:
      return worker::v1::STEP_KIND_DECODE;
    case StepKind::kSpeculate:
      break;
  }
  return worker::v1::STEP_KIND_SPECULATE;
}

absl::StatusOr<StepSequence> ToSequence(const worker::v1::StepSequence& message) {
  StepSequence sequence;
  KVASIR_RETURN_IF_ERROR(CheckRange("sequence_id", message.sequence_id(), {0, kNoLimit}));
  KVASIR_RETURN_IF_ERROR(CheckRange("committed_tokens", message.committed_tokens(), {0, kContextTokensMax}));
  KVASIR_RETURN_IF_ERROR(CheckRange("limit_tokens", message.limit_tokens(), {1, kContextTokensMax}));
  KVASIR_RETURN_IF_ERROR(CheckRange("pending_tokens", message.pending_tokens(), {0, kDraftTokensMax + 1}));
  KVASIR_RETURN_IF_ERROR(CheckRange("seat", message.seat(), {0, kRequestsMax - 1}));
  KVASIR_RETURN_IF_ERROR(CheckCount("pools", message.pools_size(), kPoolsMax));
  if (message.token_ids().empty()) {
    return FieldError(reason::kMissingField, "token_ids",
                      "token_ids is empty; a step has at least one token");
  }
  sequence.id = SequenceId(message.sequence_id());
  sequence.committed = message.committed_tokens();
  sequence.limit = message.limit_tokens();
  sequence.tokens.assign(message.token_ids().begin(), message.token_ids().end());
  sequence.last_chunk = message.last_chunk();
  sequence.pending = message.pending_tokens();
  sequence.seat = message.seat();
  KVASIR_ASSIGN_OR_RETURN(sequence.sampling, ToSampling(message.sampling(), /*fresh_seed=*/0));
  for (const worker::v1::BlockList& pool : message.pools()) {
    std::vector<BlockId>& blocks = sequence.blocks.emplace_back();
    for (const std::int64_t id : pool.block_ids()) {
      const std::string field =
          absl::StrFormat("pools[%d].block_ids[%d]", sequence.blocks.size() - 1, blocks.size());
      KVASIR_RETURN_IF_ERROR(CheckRange(field, id, {0, kArenaBytesMax}));
      blocks.emplace_back(id);
    }
  }
  return sequence;
}

absl::StatusOr<ParentMove> ToMove(const worker::v1::ParentMove& message) {
  KVASIR_RETURN_IF_ERROR(CheckRange("pool_id", message.pool_id(), {0, kPoolsMax - 1}));
  KVASIR_RETURN_IF_ERROR(CheckRange("parent_id", message.parent_id(), {1, kParentsMax}));
  if (message.from_block_ids_size() != message.to_block_ids_size()) {
    return FieldError(reason::kConflictingFields, "to_block_ids",
                      absl::StrFormat("to_block_ids has %d blocks for %d from_block_ids; want one for each",
                                      message.to_block_ids_size(), message.from_block_ids_size()));
  }
  ParentMove move{.pool = PoolId(message.pool_id()), .parent = ParentId(message.parent_id())};
  for (int i = 0; i < message.from_block_ids_size(); ++i) {
    for (const auto& [list, id] : {std::pair{"from_block_ids", message.from_block_ids(i)},
                                   std::pair{"to_block_ids", message.to_block_ids(i)}}) {
      KVASIR_RETURN_IF_ERROR(CheckRange(absl::StrFormat("%s[%d]", list, i), id, {0, kArenaBytesMax}));
    }
    move.blocks.push_back({BlockId(message.from_block_ids(i)), BlockId(message.to_block_ids(i))});
  }
  return move;
}

void FromMove(const ParentMove& move, worker::v1::ParentMove& message) {
  message.set_pool_id(move.pool.value());
  message.set_parent_id(move.parent.value());
  for (const ParentMove::Block& block : move.blocks) {
    message.add_from_block_ids(block.from.value());
    message.add_to_block_ids(block.to.value());
  }
}

}  // namespace

absl::StatusOr<StepPlan> ToStepPlan(const worker::v1::StepPlan& message) {
  StepPlan step;
  KVASIR_ASSIGN_OR_RETURN(step.epoch, ToEpoch("epoch", message.epoch()));
  KVASIR_RETURN_IF_ERROR(CheckPlanId("plan_id", message.plan_id()));
  KVASIR_RETURN_IF_ERROR(CheckRange("step", message.step(), {0, kNoLimit}));
  KVASIR_ASSIGN_OR_RETURN(step.kind, ToKind(message.kind()));
  if (message.has_cost()) {
    KVASIR_RETURN_IF_ERROR(CheckRange("cost.fixed", message.cost().fixed(), {0, kStepCostMax}));
    KVASIR_RETURN_IF_ERROR(CheckRange("cost.row", message.cost().row(), {0, kStepCostMax}));
    step.cost = {.fixed = message.cost().fixed(), .row = message.cost().row()};
  }
  step.plan_id = message.plan_id();
  step.step = message.step();
  for (const std::int64_t parent : message.zero_parent_ids()) {
    KVASIR_RETURN_IF_ERROR(CheckRange(absl::StrFormat("zero_parent_ids[%d]", step.zero_parents.size()),
                                      parent, {1, kParentsMax}));
    step.zero_parents.emplace_back(parent);
  }
  if (message.has_move()) {
    absl::StatusOr<ParentMove> move = ToMove(message.move());
    if (!move.ok()) return WithinField("move", move.status());
    step.move = *std::move(move);
  }
  if (message.sequences().empty()) {
    return FieldError(reason::kMissingField, "sequences", "sequences is empty; a step has at least one");
  }
  KVASIR_RETURN_IF_ERROR(CheckCount("sequences", message.sequences_size(), kRequestsMax));
  for (const worker::v1::StepSequence& sequence : message.sequences()) {
    absl::StatusOr<StepSequence> converted = ToSequence(sequence);
    if (!converted.ok()) {
      return WithinField(absl::StrFormat("sequences[%d]", step.sequences.size()), converted.status());
    }
    step.sequences.push_back(*std::move(converted));
  }
  return step;
}

worker::v1::StepPlan FromStepPlan(const StepPlan& step) {
  worker::v1::StepPlan message;
  message.set_epoch(step.epoch.value());
  message.set_plan_id(step.plan_id);
  message.set_step(step.step);
  message.set_kind(FromKind(step.kind));
  for (const ParentId parent : step.zero_parents) message.add_zero_parent_ids(parent.value());
  if (step.move.has_value()) FromMove(*step.move, *message.mutable_move());
  if (step.cost != StepCost{}) {
    message.mutable_cost()->set_fixed(step.cost.fixed);
    message.mutable_cost()->set_row(step.cost.row);
  }
  for (const StepSequence& sequence : step.sequences) {
    worker::v1::StepSequence& out = *message.add_sequences();
    out.set_sequence_id(sequence.id.value());
    out.set_committed_tokens(sequence.committed);
    out.set_limit_tokens(sequence.limit);
    out.set_last_chunk(sequence.last_chunk);
    out.set_pending_tokens(sequence.pending);
    out.set_seat(sequence.seat);
    *out.mutable_sampling() = FromSampling(sequence.sampling);
    out.mutable_token_ids()->Assign(sequence.tokens.begin(), sequence.tokens.end());
    for (const std::vector<BlockId>& pool : sequence.blocks) {
      worker::v1::BlockList& list = *out.add_pools();
      for (const BlockId id : pool) list.add_block_ids(id.value());
    }
  }
  return message;
}

absl::StatusOr<StepOutcome> ToStepOutcome(const worker::v1::StepOutcome& message) {
  KVASIR_RETURN_IF_ERROR(CheckCount("sequences", message.sequences_size(), kRequestsMax));
  StepOutcome outcome;
  outcome.step = message.step();
  for (const worker::v1::SequenceOutcome& sequence : message.sequences()) {
    SequenceOutcome& out = outcome.sequences.emplace_back();
    out.id = SequenceId(sequence.sequence_id());
    out.drafted = sequence.drafted_tokens();
    out.accepted = sequence.accepted_tokens();
    out.emitted.assign(sequence.emitted_token_ids().begin(), sequence.emitted_token_ids().end());
    out.logprobs.assign(sequence.logprobs().begin(), sequence.logprobs().end());
  }
  return outcome;
}

worker::v1::StepOutcome FromStepOutcome(const StepOutcome& outcome) {
  worker::v1::StepOutcome message;
  message.set_step(outcome.step);
  for (const SequenceOutcome& sequence : outcome.sequences) {
    worker::v1::SequenceOutcome& out = *message.add_sequences();
    out.set_sequence_id(sequence.id.value());
    out.set_drafted_tokens(static_cast<std::int32_t>(sequence.drafted));
    out.set_accepted_tokens(static_cast<std::int32_t>(sequence.accepted));
    out.mutable_emitted_token_ids()->Assign(sequence.emitted.begin(), sequence.emitted.end());
    out.mutable_logprobs()->Assign(sequence.logprobs.begin(), sequence.logprobs.end());
  }
  return message;
}

}  // namespace kvasir
