// Target and draft together, and the rollback of recurrent state.
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "planner/core/rules.h"

namespace kvasir::rules {
namespace {

void CheckTarget(const PlanRequest& request, Found& found) {
  if (request.target.context_tokens >= 1 && request.context_tokens > request.target.context_tokens) {
    found.push_back(MakeRefusal(RuleId::kContextOverModelLimit, {request.target.ref.name},
                                {{"context", std::to_string(request.context_tokens)},
                                 {"limit", std::to_string(request.target.context_tokens)}}));
  }
  std::vector<std::string> non_causal;
  for (const LayerSpec& layer : request.layers) {
    if (layer.behaviour.role == Role::kTarget && !layer.behaviour.causal) non_causal.push_back(layer.name);
  }
  if (!non_causal.empty()) found.push_back(MakeRefusal(RuleId::kTargetNotCausal, std::move(non_causal), {}));
}

void CheckDraftTokens(const PlanRequest& request, Found& found) {
  const std::int64_t tokens = request.draft_tokens;
  const std::int64_t models = request.draft.has_value() ? 1 : 0;
  const std::int64_t layers = CountLayers(request, Role::kDraft);
  const Operand tokens_operand{"draft_tokens", std::to_string(tokens)};
  const Operand models_operand{"models", std::to_string(models)};
  const Operand layers_operand{"layers", std::to_string(layers)};
  if (tokens == 0 && models + layers > 0) {
    found.push_back(MakeRefusal(RuleId::kDraftTokensMissing, {}, {models_operand, layers_operand}));
  }
  if (tokens > 0 && (models == 0 || layers == 0)) {
    found.push_back(MakeRefusal(RuleId::kDraftMissing, {}, {tokens_operand, models_operand, layers_operand}));
  }
  std::int64_t max = kDraftTokensMax;
  if (models == 1 && request.draft->draft_tokens_max > 0)
    max = std::min(max, request.draft->draft_tokens_max);
  if (tokens >= 0 && tokens <= max) return;
  std::vector<std::string> subjects;
  if (models == 1) subjects.push_back(request.draft->ref.name);
  found.push_back(
      MakeRefusal(RuleId::kDraftTokensOutOfRange, std::move(subjects),
                  {tokens_operand, {"min", models == 1 ? "1" : "0"}, {"max", std::to_string(max)}}));
}

void CheckDraftModel(const TargetFacts& target, const DraftFacts& draft, Found& found) {
  const std::vector<std::string> subject = {draft.ref.name};
  for (const std::int64_t tap : draft.target_taps) {
    // A number of layers outside its range has its own refusal.
    if (target.layers < 1 || (tap >= 0 && tap < target.layers)) continue;
    found.push_back(MakeRefusal(RuleId::kDraftTapBeyondTarget, subject,
                                {{"tap", std::to_string(tap)}, {"last", std::to_string(target.layers - 1)}}));
  }
  if (draft.target_hidden != target.hidden) {
    found.push_back(MakeRefusal(RuleId::kDraftHiddenMismatch, subject,
                                {{"draft_hidden", std::to_string(draft.target_hidden)},
                                 {"target_hidden", std::to_string(target.hidden)}}));
  }
  if (draft.vocab != target.vocab) {
    found.push_back(MakeRefusal(
        RuleId::kDraftVocabularyMismatch, subject,
        {{"draft_vocab", std::to_string(draft.vocab)}, {"target_vocab", std::to_string(target.vocab)}}));
  }
  if (draft.target_layers != 0 && draft.target_layers != target.layers) {
    found.push_back(MakeRefusal(RuleId::kDraftTargetLayersMismatch, subject,
                                {{"draft_layers", std::to_string(draft.target_layers)},
                                 {"target_layers", std::to_string(target.layers)}}));
  }
}

// All draft layers follow the first one: one pass has one number of rows.
void CheckBlockRows(const PlanRequest& request, Found& found) {
  const std::int64_t tokens = request.draft_tokens;
  if (tokens < 0 || tokens > kDraftTokensMax) return;
  // Tokens without a draft have a refusal of their own; the target's rows follow from them.
  if (tokens > 0 && !request.draft.has_value()) return;
  std::int64_t draft_rows = tokens;
  for (const LayerSpec& layer : request.layers) {
    if (layer.id.role != Role::kDraft) continue;
    if (layer.behaviour.block_rows == tokens + 1) draft_rows = tokens + 1;
    break;
  }
  for (const LayerSpec& layer : request.layers) {
    const bool draft = layer.id.role == Role::kDraft;
    // A draft without draft_tokens has its own refusal.
    if (draft && tokens == 0) continue;
    const std::int64_t want = draft ? draft_rows : tokens + 1;
    if (layer.behaviour.block_rows == want) continue;
    found.push_back(MakeRefusal(RuleId::kBlockRowsMismatch, {layer.name},
                                {{"rows", std::to_string(layer.behaviour.block_rows)},
                                 {"want", std::to_string(want)},
                                 {"draft_tokens", std::to_string(tokens)}}));
  }
}

void CheckRollback(const PlanRequest& request, Found& found) {
  if (request.draft_tokens < 1) return;
  std::vector<std::string> without_ring;
  std::int64_t count = 0;
  for (const LayerSpec& layer : request.layers) {
    if (layer.layout.kind != LayoutKind::kState) continue;
    ++count;
    if (layer.layout.ring.empty()) without_ring.push_back(layer.name);
  }
  if (count > 0 && request.rollback == RollbackChoice::kNone) {
    found.push_back(MakeRefusal(
        RuleId::kRollbackRequired, {},
        {{"draft_tokens", std::to_string(request.draft_tokens)}, {"count", std::to_string(count)}}));
  }
  if (!without_ring.empty() && request.rollback == RollbackChoice::kReplay) {
    found.push_back(MakeRefusal(RuleId::kRollbackReplayWithoutRing, std::move(without_ring), {}));
  }
}

}  // namespace

void CheckModels(const PlanRequest& request, Found& found) {
  CheckTarget(request, found);
  CheckDraftTokens(request, found);
  if (request.draft.has_value()) CheckDraftModel(request.target, *request.draft, found);
  CheckBlockRows(request, found);
  CheckRollback(request, found);
}

}  // namespace kvasir::rules
