#include "worker/engine/scheduler.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/plan/admission.h"
#include "worker/engine/sequence_tables.h"
#include "worker/engine/step_metadata.h"

namespace kvasir {
namespace {

constexpr std::array kTurns = {StepKind::kPrefill, StepKind::kSpeculate, StepKind::kDecode};

struct Sequence {
  SequenceId id;
  SequenceRequest request;
  SequenceTable table;
  std::int64_t committed = 0;  // T
  std::int64_t pending = 0;    // of StepSequence
  std::int64_t seat = 0;       // of StepSequence
  std::int64_t emitted = 0;
  std::int32_t anchor = 0;  // once the prompt is done
  [[nodiscard]] std::int64_t prompt_tokens() const {
    return static_cast<std::int64_t>(request.prompt.size());
  }
  [[nodiscard]] bool prefilling() const { return committed < prompt_tokens(); }
};

std::int64_t LimitOf(const SequenceRequest& request) {
  return static_cast<std::int64_t>(request.prompt.size()) + request.max_tokens;
}

class SchedulerImpl final : public Scheduler {
 public:
  SchedulerImpl(const Plan& plan, std::string plan_id, Epoch epoch, std::int64_t vocab, SequenceTables tables)
      : plan_(plan), plan_id_(std::move(plan_id)), epoch_(epoch), vocab_(vocab), tables_(std::move(tables)) {
    for (const PlanPool& pool : plan_.pools) {
      decode_rows_ = std::max(decode_rows_, DemandOf(plan_, pool).block_rows);
    }
  }

  [[nodiscard]] absl::Status CheckRequest(const SequenceRequest& request) const override;
  absl::StatusOr<SequenceId> Join(const SequenceRequest& request) override;
  void MakeRoomFor(const SequenceRequest& request) override { waiting_limit_ = LimitOf(request); }
  absl::Status Cancel(SequenceId id) override;
  std::optional<StepPlan> NextStep() override;
  absl::StatusOr<std::vector<SequenceProgress>> Apply(const StepOutcome& outcome) override;
  std::vector<SequenceId> FailStep() override;

  [[nodiscard]] std::int64_t running() const override { return static_cast<std::int64_t>(sequences_.size()); }
  [[nodiscard]] std::int64_t free_parents() const override { return tables_.free_parents(); }

 private:
  [[nodiscard]] absl::Status CheckToken(const char* field, std::size_t index, std::int32_t token) const;
  [[nodiscard]] StepKind KindOf(const Sequence& sequence) const;
  [[nodiscard]] std::int64_t FreeSeat() const;
  [[nodiscard]] std::vector<Sequence*> SequencesOf(StepKind kind);
  [[nodiscard]] std::optional<ParentMove> Compact(std::optional<std::int64_t> waiting_limit);
  [[nodiscard]] StepSequence PartOf(Sequence& sequence, StepKind kind);
  [[nodiscard]] absl::Status CheckOutcome(const StepOutcome& outcome) const;
  [[nodiscard]] SequenceProgress Advance(Sequence& sequence, StepKind kind, const StepSequence& part,
                                         const SequenceOutcome& outcome) const;

  Plan plan_;
  std::string plan_id_;
  Epoch epoch_;
  std::int64_t vocab_;
  SequenceTables tables_;
  std::int64_t decode_rows_ = 1;
  std::map<SequenceId, Sequence> sequences_;  // ascending ids: oldest first
  std::int64_t next_id_ = 0;
  std::int64_t next_step_ = 0;
  std::optional<std::int64_t> waiting_limit_;  // of the request that the next step makes room for
  std::optional<StepPlan> out_;                // given, not yet applied
  std::size_t turn_ = 0;                       // of kTurns: whose it is, if it has work
};

absl::Status SchedulerImpl::CheckToken(const char* field, std::size_t index, std::int32_t token) const {
  if (token >= 0 && token < vocab_) return absl::OkStatus();
  return FieldError(
      reason::kValueOutOfRange, absl::StrFormat("%s[%d]", field, index),
      absl::StrFormat("%s[%d]: token %d, want 0 .. %d (vocabulary)", field, index, token, vocab_ - 1));
}

absl::Status SchedulerImpl::CheckRequest(const SequenceRequest& request) const {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  if (prompt < 1) return FieldError(reason::kMissingField, "prompt", "prompt: 0 tokens, want at least 1");
  if (request.max_tokens < 1) {
    return FieldError(reason::kValueOutOfRange, "max_tokens",
                      absl::StrFormat("max_tokens: %d, want at least 1", request.max_tokens));
  }
  if (prompt >= plan_.context_tokens) {
    return FieldError(reason::kValueOutOfRange, "prompt",
                      absl::StrFormat("prompt: %d tokens, want fewer than %d, the plan's context", prompt,
                                      plan_.context_tokens));
  }
  if (request.max_tokens > plan_.context_tokens - prompt) {
    return FieldError(
        reason::kValueOutOfRange, "max_tokens",
        absl::StrFormat("max_tokens: %d after a prompt of %d tokens, want prompt + max_tokens <= "
                        "%d, the plan's context",
                        request.max_tokens, prompt, plan_.context_tokens));
  }
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    KVASIR_RETURN_IF_ERROR(CheckToken("prompt", i, request.prompt[i]));
  }
  for (std::size_t i = 0; i < request.stop_tokens.size(); ++i) {
    KVASIR_RETURN_IF_ERROR(CheckToken("stop_tokens", i, request.stop_tokens[i]));
  }
  return CheckSampling(request.sampling);
}

absl::StatusOr<SequenceId> SchedulerImpl::Join(const SequenceRequest& request) {
  KVASIR_RETURN_IF_ERROR(CheckRequest(request));
  if (running() >= plan_.max_requests) {
    return MakeError({.code = absl::StatusCode::kResourceExhausted,
                      .reason = reason::kTooManyRequests,
                      .message = absl::StrFormat(
                          "max_requests: %d sequences run already, as many as the plan allows", running())});
  }
  KVASIR_ASSIGN_OR_RETURN(SequenceTable table, tables_.Reserve(LimitOf(request)));
  const SequenceId id(next_id_++);
  sequences_.emplace(id,
                     Sequence{.id = id, .request = request, .table = std::move(table), .seat = FreeSeat()});
  return id;
}

// The lowest; there is one, since fewer than max_requests sequences run.
std::int64_t SchedulerImpl::FreeSeat() const {
  std::vector<bool> taken(static_cast<std::size_t>(plan_.max_requests), false);
  for (const auto& [id, sequence] : sequences_) taken[static_cast<std::size_t>(sequence.seat)] = true;
  return std::find(taken.begin(), taken.end(), false) - taken.begin();
}

absl::Status SchedulerImpl::Cancel(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) {
    return MakeError({.code = absl::StatusCode::kNotFound,
                      .reason = reason::kSequenceUnknown,
                      .message = absl::StrFormat("sequence %d is not running", id.value())});
  }
  tables_.Release(found->second.table);
  sequences_.erase(found);
  return absl::OkStatus();
}

StepKind SchedulerImpl::KindOf(const Sequence& sequence) const {
  if (sequence.prefilling()) return StepKind::kPrefill;
  return sequence.request.speculate && plan_.draft_tokens > 0 ? StepKind::kSpeculate : StepKind::kDecode;
}

// Those whose next step is of this kind, oldest first; a prefill step takes one.
std::vector<Sequence*> SchedulerImpl::SequencesOf(StepKind kind) {
  std::vector<Sequence*> found;
  for (auto& [id, sequence] : sequences_) {
    if (KindOf(sequence) != kind) continue;
    found.push_back(&sequence);
    if (kind == StepKind::kPrefill) break;
  }
  return found;
}

StepSequence SchedulerImpl::PartOf(Sequence& sequence, StepKind kind) {
  StepSequence part{.id = sequence.id,
                    .committed = sequence.committed,
                    .limit = sequence.table.limit,
                    .sampling = sequence.request.sampling};
  part.pending = sequence.pending;
  part.seat = sequence.seat;
  std::int64_t rows = decode_rows_;
  if (kind == StepKind::kPrefill) {
    // Chunks start at fixed multiples from position 0, so a prompt is cut the same way whatever else runs.
    rows = std::min(plan_.prefill_chunk, sequence.prompt_tokens() - sequence.committed);
    const auto first = sequence.request.prompt.begin() + sequence.committed;
    part.tokens.assign(first, first + rows);
    part.last_chunk = sequence.committed + rows == sequence.prompt_tokens();
  } else {
    part.tokens = {sequence.anchor};
  }
  tables_.Place(sequence.table, sequence.committed, rows);
  part.blocks = sequence.table.columns;
  return part;
}

std::optional<ParentMove> SchedulerImpl::Compact(std::optional<std::int64_t> waiting_limit) {
  if (!waiting_limit.has_value() || running() >= plan_.max_requests) return std::nullopt;
  std::vector<SequenceTable*> tables;
  tables.reserve(sequences_.size());
  for (auto& [id, sequence] : sequences_) tables.push_back(&sequence.table);
  return tables_.Compact(*waiting_limit, tables);
}

std::optional<StepPlan> SchedulerImpl::NextStep() {
  KVASIR_CHECK(!out_.has_value());
  // Whether or not there is a step: the hint does not outlive the request.
  const std::optional<std::int64_t> waiting_limit = std::exchange(waiting_limit_, std::nullopt);
  StepPlan step{.epoch = epoch_, .plan_id = plan_id_, .step = next_step_};
  std::vector<Sequence*> chosen;
  for (std::size_t i = 0; i < kTurns.size() && chosen.empty(); ++i) {
    step.kind = kTurns[turn_];
    chosen = SequencesOf(step.kind);
    turn_ = (turn_ + 1) % kTurns.size();
  }
  if (chosen.empty()) return std::nullopt;
  step.move = Compact(waiting_limit);
  for (Sequence* sequence : chosen) step.sequences.push_back(PartOf(*sequence, step.kind));
  step.zero_parents = tables_.TakeParentsToZero();
  ++next_step_;
  out_ = step;
  return step;
}

absl::Status SchedulerImpl::CheckOutcome(const StepOutcome& outcome) const {
  if (!out_.has_value()) return absl::FailedPreconditionError("no step is out");
  if (outcome.step != out_->step || outcome.sequences.size() != out_->sequences.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("outcome: step %d with %d sequences, want step %d with %d", outcome.step,
                        outcome.sequences.size(), out_->step, out_->sequences.size()));
  }
  for (std::size_t i = 0; i < outcome.sequences.size(); ++i) {
    const SequenceOutcome& its = outcome.sequences[i];
    const StepSequence& part = out_->sequences[i];
    const bool sampled = out_->kind != StepKind::kPrefill || part.last_chunk;
    const std::int64_t drafted =
        out_->kind == StepKind::kSpeculate ? DraftedTokens(part, plan_.draft_tokens) : 0;
    const std::int64_t tokens = sampled ? its.accepted + 1 : 0;
    const std::int64_t logprobs = part.sampling.logprobs ? tokens : 0;
    if (its.id != part.id || its.drafted < 0 || its.drafted > drafted || its.accepted < 0 ||
        its.accepted > its.drafted || static_cast<std::int64_t>(its.emitted.size()) != tokens ||
        static_cast<std::int64_t>(its.logprobs.size()) != logprobs) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "outcome.sequences[%d]: id %d, %d drafted, %d accepted, %d emitted, %d log-probabilities; want id "
          "%d, at most %d drafted",
          i, its.id.value(), its.drafted, its.accepted, its.emitted.size(), its.logprobs.size(),
          part.id.value(), drafted));
    }
    for (std::size_t t = 0; t < its.emitted.size(); ++t) {
      KVASIR_RETURN_IF_ERROR(CheckToken("outcome.emitted", t, its.emitted[t]));
    }
  }
  return absl::OkStatus();
}

SequenceProgress SchedulerImpl::Advance(Sequence& sequence, StepKind kind, const StepSequence& part,
                                        const SequenceOutcome& outcome) const {
  SequenceProgress progress{.id = sequence.id, .drafted = outcome.drafted};
  // A chunk commits its own tokens, a decode the anchor, a verify the anchor and what was accepted. The last
  // token emitted is the next anchor: it stands at the new T, and its K/V is not there yet.
  const std::int64_t committed = static_cast<std::int64_t>(part.tokens.size()) + outcome.accepted;
  sequence.committed += committed;
  // Under replay a decoding pass leaves its accepted drafts in the ring, for the next pass to take in.
  const bool replays = plan_.rollback == StateRollback::kReplay && kind != StepKind::kPrefill;
  sequence.pending = replays ? outcome.accepted : 0;
  const std::vector<std::int32_t>& stops = sequence.request.stop_tokens;
  for (const std::int32_t token : outcome.emitted) {
    progress.tokens.push_back(token);
    ++sequence.emitted;
    sequence.anchor = token;
    progress.finished = sequence.emitted == sequence.request.max_tokens ||
                        std::find(stops.begin(), stops.end(), token) != stops.end();
    if (progress.finished) break;
  }
  // A stop token among the accepted drafts cuts off what follows it.
  const auto told = static_cast<std::int64_t>(progress.tokens.size());
  progress.accepted = std::min(outcome.accepted, told);
  const auto logprobs = std::min(progress.tokens.size(), outcome.logprobs.size());
  progress.logprobs.assign(outcome.logprobs.begin(),
                           outcome.logprobs.begin() + static_cast<std::ptrdiff_t>(logprobs));
  return progress;
}

absl::StatusOr<std::vector<SequenceProgress>> SchedulerImpl::Apply(const StepOutcome& outcome) {
  KVASIR_RETURN_IF_ERROR(CheckOutcome(outcome));
  const StepPlan step = *std::exchange(out_, std::nullopt);
  std::vector<SequenceProgress> all;
  for (std::size_t i = 0; i < step.sequences.size(); ++i) {
    const auto found = sequences_.find(step.sequences[i].id);
    if (found == sequences_.end()) continue;  // cancelled while the step ran
    all.push_back(Advance(found->second, step.kind, step.sequences[i], outcome.sequences[i]));
    if (all.back().finished) {
      tables_.Release(found->second.table);
      sequences_.erase(found);
    } else {
      tables_.Settle(found->second.table, found->second.committed);
    }
  }
  return all;
}

std::vector<SequenceId> SchedulerImpl::FailStep() {
  KVASIR_CHECK(out_.has_value());
  const StepPlan step = *std::exchange(out_, std::nullopt);
  std::vector<SequenceId> lost;
  for (const StepSequence& part : step.sequences) {
    if (Cancel(part.id).ok()) lost.push_back(part.id);
  }
  return lost;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const Plan& plan, std::string plan_id,
                                                             Epoch epoch, std::int64_t vocab) {
  if (vocab < 1) return absl::InvalidArgumentError(absl::StrFormat("vocab: %d, want at least 1", vocab));
  KVASIR_ASSIGN_OR_RETURN(SequenceTables tables, SequenceTables::Create(plan));
  return std::unique_ptr<Scheduler>(
      std::make_unique<SchedulerImpl>(plan, std::move(plan_id), epoch, vocab, std::move(tables)));
}

}  // namespace kvasir
