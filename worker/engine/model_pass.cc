#include "worker/engine/model_pass.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "worker/engine/chain_pass.h"
#include "worker/engine/draft_pass.h"
#include "worker/engine/pass_scratch.h"
#include "worker/engine/role_model.h"
#include "worker/engine/target_pass.h"
#include "worker/engine/weight_set.h"

namespace kvasir {
namespace {

class MlaRankModel : public RankModel {
 public:
  [[nodiscard]] LaunchList Build(const PassShape& shape, const PassInputs& in,
                                 const PassOutputs& out) const override {
    KVASIR_CHECK(shape.rows() <= rows_max);
    const bool draft_pass = shape.pass == Pass::kDraftContext || shape.pass == Pass::kDraftBlock;
    KVASIR_CHECK(!draft_pass || draft.has_value());
    const PassContext context{draft_pass ? *draft : target, scratch, arena, shape, in, out};
    if (draft_pass && context.model.chain) {
      return shape.pass == Pass::kDraftContext ? WriteChainContextPass(context)
                                               : WriteChainBlockPass(context);
    }
    if (shape.pass == Pass::kDraftContext) return WriteDraftContextPass(context);
    if (shape.pass == Pass::kDraftBlock) return WriteDraftBlockPass(context);
    return WriteTargetPass(context);
  }
  [[nodiscard]] Bytes weight_bytes() const override { return weights.bytes(); }
  [[nodiscard]] Bytes scratch_bytes() const override { return scratch.memory->size(); }

  RoleModel target;
  std::optional<RoleModel> draft;
  WeightSet weights;
  PassScratch scratch;
  std::byte* arena = nullptr;
  std::int64_t rows_max = 0;
};

absl::Status Conflict(const std::string& field, std::string message) {
  return FieldError(reason::kConflictingFields, field, std::move(message));
}

// A chain reads the target's last state as wide as its own, and has nothing behind its head.
absl::Status CheckChain(const ModelDescription& target, const ModelDescription& draft) {
  const DraftShape& shape = *draft.draft;
  if (draft.hidden != target.hidden) {
    return Conflict(
        "draft.hidden",
        absl::StrFormat("hidden size %d of a draft that joins the target's states is not their %d",
                        draft.hidden, target.hidden));
  }
  if (!shape.target_taps.empty() || shape.markov_rank > 0 || shape.confidence_head || !shape.causal) {
    return Conflict(
        "draft", absl::StrFormat("the draft %s drafts one token after the other, and has taps, a Markov or "
                                 "confidence head, or rows that are not causal; give none of them",
                                 draft.name));
  }
  return absl::OkStatus();
}

// What the two descriptions must agree on.
absl::Status CheckPair(const ModelDescription& target, const ModelDescription& draft) {
  if (!draft.draft.has_value()) {
    return Conflict("draft", absl::StrFormat("model %s is not a draft; give a draft model", draft.name));
  }
  const DraftShape& shape = *draft.draft;
  if (draft.vocab != target.vocab) {
    return Conflict("draft.vocab",
                    absl::StrFormat("the draft has %d tokens, the target %d; they must be equal", draft.vocab,
                                    target.vocab));
  }
  if (draft.hidden != target.hidden && !(shape.own_embedding && shape.own_head)) {
    return Conflict("draft.hidden",
                    absl::StrFormat("hidden size %d of the draft is not the target's %d, whose embedding or "
                                    "head it uses; ship both with the draft",
                                    draft.hidden, target.hidden));
  }
  if (shape.target_hidden != target.hidden) {
    return Conflict("draft.target_hidden",
                    absl::StrFormat("the draft reads hidden states of %d elements, the target's have %d",
                                    shape.target_hidden, target.hidden));
  }
  const std::int64_t layers = static_cast<std::int64_t>(target.layers.size());
  for (const std::int64_t tap : shape.target_taps) {
    if (tap < 0 || tap >= layers) {
      return Conflict("draft.target_taps",
                      absl::StrFormat("tap %d is not one of the target's %d layers", tap, layers));
    }
  }
  if (shape.method == DraftMethod::kMtp) return CheckChain(target, draft);
  if (shape.target_taps.empty()) {
    return Conflict("draft.target_taps", "the draft taps no target layer");
  }
  if (shape.method == DraftMethod::kDflash && target.residual_block > 0) {
    return MakeError({.code = absl::StatusCode::kUnimplemented,
                      .reason = reason::kBackendUnsupportedGroup,
                      .message = "BACKEND_UNSUPPORTED_GROUP draft: a DFlash draft of a target with attention "
                                 "over residuals reads mixtures of them, which this worker does not tap",
                      .metadata = {{"group", "draft"}}});
  }
  return absl::OkStatus();
}

absl::Status AddDraft(const RankModelOptions& options, MlaRankModel* model) {
  KVASIR_RETURN_IF_ERROR(CheckPair(*options.target, *options.draft));
  KVASIR_ASSIGN_OR_RETURN(model->draft,
                          MakeRoleModel(*options.plan, options.place, Role::kDraft, *options.draft));
  const DraftShape& shape = *options.draft->draft;
  const std::int64_t want = options.plan->draft_tokens + (shape.AnchorPredictsNothing() ? 1 : 0);
  if (options.plan->draft_tokens > 0 && DraftBlockRows(*options.plan) != want) {
    return Conflict(
        "plan.pools.groups.behaviour.block_rows",
        absl::StrFormat("the plan's blocks of the draft have %d rows, those of %s have %d; plan again",
                        DraftBlockRows(*options.plan), options.draft->name, want));
  }
  for (RoleLayer& layer : model->draft->layers) {
    if (auto* gqa = std::get_if<GqaLayer>(&layer.mixer)) gqa->halves = TurnsInHalves(shape, *options.target);
  }
  model->target.chain = shape.IsChain();
  model->draft->chain = shape.IsChain();
  model->target.taps = shape.target_taps;
  model->draft->taps = shape.target_taps;
  model->draft->tap_hidden = shape.target_hidden;
  model->draft->heads = DraftHeads::Of(shape);
  DeclareWeights(*options.draft, options.place, model->weights, &*model->draft);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankModel>> MakeRankModel(Backend& backend, const RankModelOptions& options) {
  auto model = std::make_unique<MlaRankModel>();
  model->arena = options.arena;
  model->rows_max = options.rows_max;
  KVASIR_ASSIGN_OR_RETURN(model->target,
                          MakeRoleModel(*options.plan, options.place, Role::kTarget, *options.target));
  DeclareWeights(*options.target, options.place, model->weights, &model->target);
  if (options.draft != nullptr) KVASIR_RETURN_IF_ERROR(AddDraft(options, model.get()));
  const SyntheticWeights synthetic(options.weight_seed);
  KVASIR_RETURN_IF_ERROR(
      model->weights.Load(backend, options.weights != nullptr ? *options.weights : synthetic));
  std::vector<const RoleModel*> models = {&model->target};
  if (model->draft.has_value()) {
    if (model->draft->embedding == nullptr) model->draft->embedding = model->target.embedding;
    if (model->draft->head == nullptr) model->draft->head = model->target.head;
    models.push_back(&*model->draft);
  }
  KVASIR_ASSIGN_OR_RETURN(model->scratch, MakePassScratch(backend, models, options.rows_max));
  return model;
}

}  // namespace kvasir
