#include "worker/service/preflight_sequences.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "worker/engine/sequence_tables.h"

namespace kvasir {
namespace {

constexpr std::int64_t kPromptTokensMax = 96;

}  // namespace

std::vector<std::int32_t> PreflightSequences::TokensFrom(std::int64_t first, std::int64_t count) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>((first * 7 + i * 13 + 1) % options_->target.vocab));
  }
  return tokens;
}

absl::StatusOr<PreflightSequences> PreflightSequences::Fill(const RankEngineOptions& options,
                                                            PassRunner& passes) {
  PreflightSequences filled(options);
  const Plan& plan = options.plan;
  const std::int64_t rows_after = plan.draft_tokens + 2;
  const std::int64_t prompt = std::max<std::int64_t>(
      1, std::min({kPromptTokensMax, plan.prefill_chunk, plan.context_tokens - rows_after}));
  KVASIR_ASSIGN_OR_RETURN(SequenceTables tables, SequenceTables::Create(plan));
  for (std::int64_t i = 0; i < plan.max_requests; ++i) {
    absl::StatusOr<SequenceTable> table = tables.Reserve(std::min(prompt + rows_after, plan.context_tokens));
    // A small arena: buckets beyond are padded.
    if (absl::IsResourceExhausted(table.status()) && i > 0) break;
    KVASIR_RETURN_IF_ERROR(table.status());
    tables.Place(*table, 0, prompt + rows_after);
    StepSequence sequence{.id = SequenceId(i), .limit = table->limit, .last_chunk = true, .seat = i};
    sequence.tokens = filled.TokensFrom(i, prompt);
    sequence.blocks = table->columns;
    KVASIR_RETURN_IF_ERROR(filled.Prefill(passes, sequence));
    sequence.committed = prompt;
    sequence.tokens = filled.TokensFrom(i + 100, 1);
    filled.sequences_.push_back(std::move(sequence));
  }
  return filled;
}

absl::Status PreflightSequences::Prefill(PassRunner& passes, StepSequence& sequence) const {
  const auto count = static_cast<std::int64_t>(sequence.tokens.size());
  SequenceRows rows = RowsOfPrefill(sequence);
  const PassShape shape{.pass = Pass::kTargetPrefill, .requests = 1, .query_rows = count};
  KVASIR_RETURN_IF_ERROR(passes.Run(builder_.Build(shape, {rows})));
  if (options_->plan.draft_tokens == 0) return absl::OkStatus();
  rows.attends = false;
  if (IsChain(*options_)) rows = RowsOfChainContext(sequence, sequence.tokens);
  const PassShape context{.pass = Pass::kDraftContext, .requests = 1, .query_rows = count};
  return passes.Run(builder_.Build(context, {rows}));
}

SequenceRows PreflightSequences::RowsOf(Pass pass, const StepSequence& sequence) const {
  const std::int64_t drafted = DraftedTokens(sequence, options_->plan.draft_tokens);
  const bool chain = IsChain(*options_);
  switch (pass) {
    case Pass::kTargetVerify:
      return RowsOfVerify(sequence, TokensFrom(sequence.id.value() + 200, drafted));
    case Pass::kDraftContext:
      return chain ? RowsOfChainContext(sequence, TokensFrom(sequence.id.value() + 200, drafted + 1))
                   : RowsOfContext(sequence, drafted);
    case Pass::kDraftBlock:
      return chain ? RowsOfChainBlock(options_->plan, sequence)
                   : RowsOfDraftBlock(options_->plan, sequence,
                                      static_cast<std::int32_t>(options_->draft->draft->mask_token));
    case Pass::kTargetPrefill:
    case Pass::kTargetDecode:
      break;
  }
  return RowsOfDecode(sequence);
}

PassMetadata PreflightSequences::MetadataOf(const PlanGraph& graph) const {
  std::vector<SequenceRows> rows;
  for (const StepSequence& sequence : sequences_) {
    if (static_cast<std::int64_t>(rows.size()) < graph.bucket) rows.push_back(RowsOf(graph.pass, sequence));
  }
  const PassShape shape{.pass = graph.pass, .requests = graph.bucket, .query_rows = graph.query_rows};
  PassMetadata metadata = builder_.Build(shape, rows);
  std::fill(metadata.carried.begin(), metadata.carried.end(), -1);
  return metadata;
}

}  // namespace kvasir
