// Drafts that have no configuration of their own: they are made from another model's description.
#ifndef KVASIR_COMMON_MODELS_DRAFT_OF_H_
#define KVASIR_COMMON_MODELS_DRAFT_OF_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir {

// The target's own layers of multi-token prediction as a draft: as an engine rewrites the target's
// configuration for methods "mtp", "deepseek_mtp", "qwen3_5_mtp" and so on. `block` is how many tokens ahead
// the layers predict; an engine may run them several times. FailedPrecondition naming the model where it has
// none.
[[nodiscard]] absl::StatusOr<ModelDescription> MtpDraft(const ModelDescription& target);

// An EAGLE checkpoint whose configuration only says "Llama": the engine is told the method.
// FailedPrecondition where the model is a draft of another method already.
[[nodiscard]] absl::StatusOr<ModelDescription> EagleDraft(const ModelDescription& model, DraftMethod method);

// Whether row k of the drafted block predicts the token in its own place (DFlash), so that a block of N
// drafted tokens has N + 1 rows; else it predicts the one after (DSpark), and the block has N.
[[nodiscard]] bool AnchorPredictsNothing(const DraftShape& draft);

// Tokens that a draft was trained to draft at once; 0: its configuration does not say.
[[nodiscard]] std::int64_t TrainedTokens(const DraftShape& draft);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_DRAFT_OF_H_
