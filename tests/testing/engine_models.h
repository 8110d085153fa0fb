// The small models that engine tests run, and which of them a plan names.
#ifndef KVASIR_TESTS_TESTING_ENGINE_MODELS_H_
#define KVASIR_TESTS_TESTING_ENGINE_MODELS_H_

#include <cstdint>

#include "common/models/model_description.h"
#include "common/plan/plan.h"

namespace kvasir::testing {

inline constexpr std::int64_t kSmallVocab = 96;

// 2 layers, hidden 32, 8 heads, latent 16 + rotary 8, vocabulary 96.
[[nodiscard]] ModelDescription SmallTarget();
// The same with a mixture of experts in its second layer: 8, of which 3 are chosen by sigmoid, bias and
// groups, and a shared one.
[[nodiscard]] ModelDescription SmallExpertsTarget();
// 2 layers over the target's tapped layers, Markov and confidence heads, the target's embedding and head.
[[nodiscard]] ModelDescription SmallDraft(MarkovHead head = MarkovHead::kVanilla);
// DFlash: as SmallDraft, but layers have keys and values per head (8 heads of 8 over 2), the block's anchor
// predicts nothing, and there are no heads behind it.
[[nodiscard]] ModelDescription SmallDflash();
// 4 layers: KDA (8 heads of 8, kernel 4), MLA without rotation, KDA with K3's gates, KDA; else as
// SmallTarget.
[[nodiscard]] ModelDescription HybridTarget();
// The same with such a mixture in every layer but the first, and attention over residuals.
[[nodiscard]] ModelDescription HybridExpertsTarget();
// As SmallDraft, over layers 1 and 3.
[[nodiscard]] ModelDescription HybridDraft();
// A module of multi-token prediction as DeepSeek-V3's checkpoints have, in front of the target: its MLA
// layer, with the target's last MLP.
[[nodiscard]] ModelDescription MtpOf(ModelDescription target);
// The models that a plan of MakeEnginePlan names.
[[nodiscard]] ModelDescription TargetOf(const Plan& plan);
[[nodiscard]] ModelDescription DraftOf(const Plan& plan);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_ENGINE_MODELS_H_
