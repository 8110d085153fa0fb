#include "worker/engine/drafter.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "worker/engine/choose_tokens.h"
#include "worker/engine/choose_verify_rows.h"

namespace kvasir {

std::int64_t Drafter::FirstDrafted(std::size_t index) const {
  const std::int64_t rows = DraftBlockRows(options_.plan);
  return static_cast<std::int64_t>(index) * rows + rows - options_.plan.draft_tokens;
}

absl::StatusOr<Drafts> Drafter::Draft(const StepPlan& step) {
  const std::int64_t draft_tokens = options_.plan.draft_tokens;
  const auto mask = static_cast<std::int32_t>(options_.draft->draft->mask_token);
  const std::size_t count = step.sequences.size();
  std::vector<SequenceRows> rows;
  rows.reserve(count);
  for (const StepSequence& sequence : step.sequences) {
    rows.push_back(IsChain(options_) ? RowsOfChainBlock(options_.plan, sequence)
                                     : RowsOfDraftBlock(options_.plan, sequence, mask));
  }
  const PassShape shape =
      runner_.ShapeFor(Pass::kDraftBlock, DraftBlockRows(options_.plan), static_cast<std::int64_t>(count));
  KVASIR_RETURN_IF_ERROR(runner_.Run(builder_.Build(shape, rows)));
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int32_t> all, runner_.ReadDrafted(shape));
  std::vector<std::int32_t> drafted;  // [sequences, N]
  drafted.reserve(count * static_cast<std::size_t>(draft_tokens));
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(FirstDrafted(i));
    drafted.insert(drafted.end(), first, first + draft_tokens);
  }
  if (options_.draft_override) options_.draft_override(step, drafted);

  Drafts drafts;
  KVASIR_ASSIGN_OR_RETURN(drafts.verified, ChooseVerified(step, shape));
  drafts.tokens.resize(count);
  drafts.distributions.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = drafted.begin() + static_cast<std::ptrdiff_t>(i) * draft_tokens;
    const std::int64_t valid = std::min(DraftedTokens(step.sequences[i], draft_tokens), drafts.verified);
    drafts.tokens[i].assign(first, first + valid);
    if (!step.sequences[i].sampling.samples()) continue;
    KVASIR_RETURN_IF_ERROR(ReadDistributions(step, shape, i, drafts));
  }
  return drafts;
}

absl::StatusOr<std::int64_t> Drafter::ChooseVerified(const StepPlan& step, const PassShape& shape) {
  const std::int64_t draft_tokens = options_.plan.draft_tokens;
  if (step.cost.row == 0 || !options_.draft->draft->confidence_head) return draft_tokens;
  KVASIR_ASSIGN_OR_RETURN(const std::vector<float> all, runner_.ReadConfidences(shape));
  std::vector<std::vector<float>> confidences;
  confidences.reserve(step.sequences.size());
  for (std::size_t i = 0; i < step.sequences.size(); ++i) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(FirstDrafted(i));
    confidences.emplace_back(first, first + DraftedTokens(step.sequences[i], draft_tokens));
  }
  return LeastOfRanks(ChooseVerifyRows(confidences, step.cost));
}

absl::StatusOr<std::int64_t> Drafter::LeastOfRanks(std::int64_t verified) {
  if (options_.communicator == nullptr) return verified;
  std::vector<std::int64_t> all(static_cast<std::size_t>(options_.communicator->size()));
  KVASIR_RETURN_IF_ERROR(options_.communicator->AllGather(std::as_bytes(std::span(&verified, 1)),
                                                          std::as_writable_bytes(std::span(all))));
  const std::int64_t least = *std::min_element(all.begin(), all.end());
  return std::clamp<std::int64_t>(least, 0, options_.plan.draft_tokens);  // a peer's word
}

absl::Status Drafter::ReadDistributions(const StepPlan& step, const PassShape& shape, std::size_t index,
                                        Drafts& drafts) {
  const std::vector<std::int32_t>& tokens = drafts.tokens[index];
  std::vector<TokenDistribution>& all = drafts.distributions[index];
  const auto rows = static_cast<std::int64_t>(tokens.size());
  if (rows > 0 && !options_.draft_override) {
    KVASIR_ASSIGN_OR_RETURN(const std::vector<float> logits,
                            runner_.ReadDraftLogits(shape, static_cast<std::int64_t>(index),
                                                    shape.query_rows - options_.plan.draft_tokens, rows));
    all = DraftDistributions(logits, rows, step.sequences[index].sampling.temperature);
    if (all.empty()) drafts.fault = true;
  }
  // Tokens from elsewhere were picked without chance. After a fault the step goes on beside its peers, to
  // fail with them at its end.
  for (std::size_t i = all.size(); i < tokens.size(); ++i) {
    all.push_back(OneHot(tokens[i], options_.target.vocab));
  }
  return absl::OkStatus();
}

}  // namespace kvasir
