#include "common/models/draft_of.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/limits.h"

namespace kvasir {

absl::StatusOr<ModelDescription> MtpDraft(const ModelDescription& target) {
  if (target.mtp_depth == 0 || target.mtp_layers.empty()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "model %s has no layers of multi-token prediction (num_nextn_predict_layers is 0 or missing)",
        target.name));
  }
  ModelDescription draft = target;
  constexpr std::string_view kSuffix = "-mtp";
  draft.name.resize(std::min(draft.name.size(), static_cast<std::size_t>(kNameBytesMax) - kSuffix.size()));
  draft.name += kSuffix;
  draft.layers = std::exchange(draft.mtp_layers, {});
  draft.mtp_depth = 0;
  draft.encoder.reset();
  draft.multimodal = false;
  draft.layer_embedding = 0;
  draft.residual_block = 0;
  draft.draft = DraftShape{.method = DraftMethod::kMtp,
                           .causal = true,
                           .target_taps = {},
                           .target_hidden = target.hidden,
                           .target_layers = static_cast<std::int64_t>(target.layers.size()),
                           .windowed_causal = true,
                           .block = target.mtp_depth};
  return draft;
}

absl::StatusOr<ModelDescription> EagleDraft(const ModelDescription& model, DraftMethod method) {
  if (model.draft.has_value() && model.draft->method != method) {
    return absl::FailedPreconditionError(
        absl::StrFormat("model %s is a draft of another method by its own configuration", model.name));
  }
  if (model.draft.has_value()) return model;
  ModelDescription draft = model;
  draft.mtp_depth = 0;
  draft.mtp_layers.clear();
  draft.draft = DraftShape{.method = method,
                           .causal = true,
                           .target_taps = {},
                           .target_hidden = model.hidden,
                           .own_head = method == DraftMethod::kEagle3,
                           .windowed_causal = true};
  return draft;
}

bool AnchorPredictsNothing(const DraftShape& draft) {
  return draft.method == DraftMethod::kDflash || draft.method == DraftMethod::kDflare ||
         draft.method == DraftMethod::kDomino;
}

std::int64_t TrainedTokens(const DraftShape& draft) {
  return AnchorPredictsNothing(draft) && draft.block > 0 ? draft.block - 1 : draft.block;
}

}  // namespace kvasir
