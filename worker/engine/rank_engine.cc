#include "worker/engine/rank_engine.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "worker/engine/check_engine_options.h"
#include "worker/engine/check_step.h"
#include "worker/engine/choose_tokens.h"
#include "worker/engine/drafter.h"
#include "worker/engine/pass_runner.h"
#include "worker/engine/step_agreement.h"

namespace kvasir {
namespace {

// The same error, its message led by where it happened.
absl::Status At(const std::string& where, const absl::Status& status) {
  TypedError error = ErrorOf(status);
  error.message = absl::StrFormat("%s: %s", where, error.message);
  return MakeError(error);
}

class RankEngineImpl final : public RankEngine {
 public:
  RankEngineImpl(Backend& backend, RankEngineOptions options)
      : backend_(backend),
        options_(std::move(options)),
        builder_(options_.plan, options_.place, options_.unused_table_entry, IsChain(options_)) {}

  absl::Status Prepare();
  absl::StatusOr<StepOutcome> Execute(const StepPlan& step) override;
  [[nodiscard]] RankMeasurement measurement() const override {
    RankMeasurement measured = runner_->measurement();
    measured.arena_bytes = arena_->size();
    return measured;
  }
  [[nodiscard]] std::span<std::byte> arena() const override {
    return {arena_->data(), static_cast<std::size_t>(arena_->size().value())};
  }

 private:
  [[nodiscard]] absl::Status CheckIdentity(const StepPlan& step) const;
  absl::Status Break(const StepPlan& step, const absl::Status& why);
  absl::StatusOr<StepOutcome> RunStep(const StepPlan& step);
  absl::Status ZeroParents(const StepPlan& step);
  absl::Status MoveBlocks(const StepPlan& step);
  absl::Status Prefill(const StepSequence& sequence, SequenceOutcome& outcome);
  absl::Status Decode(const StepPlan& step, StepOutcome& outcome);
  absl::Status Speculate(const StepPlan& step, StepOutcome& outcome);
  // The target's pass of `shape` has run, and `next_ids` came of it; the sequence's rows start at
  // `first_row`.
  absl::Status Choose(const StepSequence& sequence, Pass pass, std::int64_t first_row,
                      std::span<const std::int32_t> next_ids, const DraftRows& draft,
                      SequenceOutcome& outcome);
  // What the draft takes in of a verify pass.
  [[nodiscard]] SequenceRows ContextRows(const StepSequence& sequence, std::span<const std::int32_t> drafted,
                                         std::int64_t accepted) const;
  absl::Status Run(const PassShape& shape, const std::vector<SequenceRows>& rows, bool wants_logits = true) {
    return runner_->Run(builder_.Build(shape, rows), wants_logits);
  }

  Backend& backend_;
  const RankEngineOptions options_;
  const MetadataBuilder builder_;
  std::unique_ptr<DeviceMemory> arena_;
  std::unique_ptr<PassRunner> runner_;
  std::int64_t next_step_ = 0;
  std::optional<Pass> fault_;  // of this step: logits that are no distribution
  std::optional<std::string> broken_;
};

absl::Status RankEngineImpl::Prepare() {
  absl::StatusOr<std::unique_ptr<DeviceMemory>> arena = backend_.Allocate(options_.plan.arena_bytes);
  if (!arena.ok()) return At("arena", arena.status());
  arena_ = *std::move(arena);
  KVASIR_ASSIGN_OR_RETURN(runner_, PassRunner::Create(backend_, options_, arena_->data()));
  return absl::OkStatus();
}

absl::Status RankEngineImpl::CheckIdentity(const StepPlan& step) const {
  if (broken_.has_value()) {
    return MakeError({.code = absl::StatusCode::kFailedPrecondition,
                      .reason = reason::kNotRunning,
                      .message = "the engine broke and must be prepared again: " + *broken_});
  }
  if (step.epoch != options_.epoch || step.plan_id != options_.plan_id) {
    return MakeError({.code = absl::StatusCode::kFailedPrecondition,
                      .reason = reason::kNotRunning,
                      .message = absl::StrFormat(
                          "step of epoch %d, plan %s; this rank runs epoch %d, plan %s", step.epoch.value(),
                          step.plan_id, options_.epoch.value(), options_.plan_id)});
  }
  if (step.step != next_step_) {
    return MakeError({.code = absl::StatusCode::kFailedPrecondition,
                      .reason = reason::kStepOutOfOrder,
                      .message = absl::StrFormat("step %d; the next is %d", step.step, next_step_)});
  }
  return absl::OkStatus();
}

absl::StatusOr<StepOutcome> RankEngineImpl::Execute(const StepPlan& step) {
  KVASIR_RETURN_IF_ERROR(CheckIdentity(step));
  KVASIR_RETURN_IF_ERROR(CheckStep(options_.plan, options_.target.vocab, step));
  ++next_step_;
  absl::StatusOr<StepOutcome> outcome = RunStep(step);
  if (!outcome.ok()) return Break(step, outcome.status());
  const std::optional<Pass> fault = runner_->fault().has_value() ? runner_->fault() : fault_;
  absl::Status agreed = AgreeOnStep(options_.communicator, *outcome, fault);
  if (absl::IsDataLoss(agreed)) return agreed;
  if (!agreed.ok()) return Break(step, agreed);
  return outcome;
}

// A rank that left a step in the middle cannot meet its peers in the next collective: nobody may wait for it.
absl::Status RankEngineImpl::Break(const StepPlan& step, const absl::Status& why) {
  const absl::Status status = At(absl::StrFormat("rank %d: step %d", options_.place.rank, step.step), why);
  broken_ = std::string(status.message());
  for (Communicator* group : {options_.communicator, options_.context_communicator}) {
    if (group != nullptr) group->Abort(*broken_);
  }
  return status;
}

absl::StatusOr<StepOutcome> RankEngineImpl::RunStep(const StepPlan& step) {
  fault_.reset();
  KVASIR_RETURN_IF_ERROR(runner_->BeginStep());
  KVASIR_RETURN_IF_ERROR(ZeroParents(step));
  KVASIR_RETURN_IF_ERROR(MoveBlocks(step));
  StepOutcome outcome{.step = step.step};
  for (const StepSequence& sequence : step.sequences) {
    outcome.sequences.push_back(SequenceOutcome{.id = sequence.id});
  }
  switch (step.kind) {
    case StepKind::kPrefill:
      KVASIR_RETURN_IF_ERROR(Prefill(step.sequences.front(), outcome.sequences.front()));
      break;
    case StepKind::kDecode:
      KVASIR_RETURN_IF_ERROR(Decode(step, outcome));
      break;
    case StepKind::kSpeculate:
      KVASIR_RETURN_IF_ERROR(Speculate(step, outcome));
      break;
  }
  return outcome;
}

absl::Status RankEngineImpl::ZeroParents(const StepPlan& step) {
  for (const ParentId parent : step.zero_parents) {
    std::byte* at = arena_->data() + parent.value() * options_.plan.parent_bytes.value();
    KVASIR_RETURN_IF_ERROR(backend_.Zero(at, options_.plan.parent_bytes));
  }
  return absl::OkStatus();
}

absl::Status RankEngineImpl::MoveBlocks(const StepPlan& step) {
  if (!step.move.has_value()) return absl::OkStatus();
  const std::int64_t stride =
      options_.plan.pools[static_cast<std::size_t>(step.move->pool.value())].stride_bytes;
  for (const ParentMove::Block& block : step.move->blocks) {
    const std::byte* from = arena_->data() + block.from.value() * stride;
    KVASIR_RETURN_IF_ERROR(backend_.Copy(arena_->data() + block.to.value() * stride, from, Bytes(stride)));
  }
  return absl::OkStatus();
}

absl::Status RankEngineImpl::Prefill(const StepSequence& sequence, SequenceOutcome& outcome) {
  const auto rows = static_cast<std::int64_t>(sequence.tokens.size());
  SequenceRows chunk = RowsOfPrefill(sequence);
  const PassShape target{.pass = Pass::kTargetPrefill, .requests = 1, .query_rows = rows};
  KVASIR_RETURN_IF_ERROR(Run(target, {chunk}, sequence.last_chunk));
  if (sequence.last_chunk) {
    KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int32_t> next, runner_->ReadNextIds(target));
    const std::span<const std::int32_t> last = std::span(next).subspan(static_cast<std::size_t>(rows - 1));
    KVASIR_RETURN_IF_ERROR(Choose(sequence, target.pass, rows - 1, last, {}, outcome));
  }
  if (options_.plan.draft_tokens == 0) return absl::OkStatus();
  chunk.attends = false;
  if (IsChain(options_)) chunk = RowsOfChainContext(sequence, sequence.tokens);
  return Run(PassShape{.pass = Pass::kDraftContext, .requests = 1, .query_rows = rows}, {chunk});
}

absl::Status RankEngineImpl::Decode(const StepPlan& step, StepOutcome& outcome) {
  std::vector<SequenceRows> rows;
  rows.reserve(step.sequences.size());
  for (const StepSequence& sequence : step.sequences) rows.push_back(RowsOfDecode(sequence));
  const PassShape shape =
      runner_->ShapeFor(Pass::kTargetDecode, 1, static_cast<std::int64_t>(step.sequences.size()));
  KVASIR_RETURN_IF_ERROR(Run(shape, rows));
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int32_t> next, runner_->ReadNextIds(shape));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    KVASIR_RETURN_IF_ERROR(Choose(step.sequences[i], shape.pass, static_cast<std::int64_t>(i),
                                  std::span(next).subspan(i, 1), {}, outcome.sequences[i]));
  }
  return absl::OkStatus();
}

absl::Status RankEngineImpl::Choose(const StepSequence& sequence, Pass pass, std::int64_t first_row,
                                    std::span<const std::int32_t> next_ids, const DraftRows& draft,
                                    SequenceOutcome& outcome) {
  std::vector<float> logits;
  if (sequence.sampling.needs_logits()) {
    KVASIR_ASSIGN_OR_RETURN(logits,
                            runner_->ReadLogits(first_row, static_cast<std::int64_t>(next_ids.size())));
  }
  // A chunk's last token and a step's only one stand at the same place: before what is emitted.
  const std::int64_t anchor = sequence.committed + static_cast<std::int64_t>(sequence.tokens.size()) - 1;
  const TargetRows target{.next_ids = next_ids, .logits = logits};
  if (!ChooseTokens(sequence.sampling, anchor, target, draft, outcome)) fault_ = pass;
  return absl::OkStatus();
}

SequenceRows RankEngineImpl::ContextRows(const StepSequence& sequence, std::span<const std::int32_t> drafted,
                                         std::int64_t accepted) const {
  if (!IsChain(options_)) return RowsOfContext(sequence, accepted);
  std::vector<std::int32_t> committed = {sequence.tokens.front()};
  committed.insert(committed.end(), drafted.begin(), drafted.begin() + accepted);
  return RowsOfChainContext(sequence, committed);
}

absl::Status RankEngineImpl::Speculate(const StepPlan& step, StepOutcome& outcome) {
  KVASIR_ASSIGN_OR_RETURN(const Drafts drafts, Drafter(options_, builder_, *runner_).Draft(step));
  if (drafts.fault) fault_ = Pass::kDraftBlock;
  const auto count = static_cast<std::int64_t>(step.sequences.size());
  std::vector<SequenceRows> rows;
  rows.reserve(step.sequences.size());
  for (std::size_t i = 0; i < step.sequences.size(); ++i) {
    rows.push_back(RowsOfVerify(step.sequences[i], drafts.tokens[i]));
  }
  const PassShape shape = runner_->ShapeFor(Pass::kTargetVerify, drafts.verified + 1, count);
  KVASIR_RETURN_IF_ERROR(Run(shape, rows));
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int32_t> next, runner_->ReadNextIds(shape));
  rows.clear();
  for (std::size_t i = 0; i < step.sequences.size(); ++i) {
    const DraftRows draft{.tokens = drafts.tokens[i], .distributions = drafts.distributions[i]};
    const std::size_t first = i * static_cast<std::size_t>(shape.query_rows);
    SequenceOutcome& its = outcome.sequences[i];
    KVASIR_RETURN_IF_ERROR(Choose(step.sequences[i], shape.pass, static_cast<std::int64_t>(first),
                                  std::span(next).subspan(first, draft.tokens.size() + 1), draft, its));
    rows.push_back(ContextRows(step.sequences[i], draft.tokens, its.accepted));
  }
  // Request i of the context pass reads the taps that request i of the verify pass left: both have equally
  // many rows.
  return Run(runner_->ShapeFor(Pass::kDraftContext, drafts.verified + 1, count), rows);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankEngine>> RankEngine::Create(Backend& backend, RankEngineOptions options) {
  KVASIR_RETURN_IF_ERROR(CheckEngineOptions(options));
  auto engine = std::make_unique<RankEngineImpl>(backend, std::move(options));
  KVASIR_RETURN_IF_ERROR(engine->Prepare());
  return engine;
}

}  // namespace kvasir
