// Short texts of keys and lists, for traces and explanations. For people: the canonical text of a plan has
// its own writer.
#ifndef KVASIR_PLANNER_CORE_STAGE_TEXT_H_
#define KVASIR_PLANNER_CORE_STAGE_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/plan/keys.h"

namespace kvasir {

// "latent bf16 1 x (512 + 64) align 16", "state recurrent:f32[196608] conv:bf16[46080] ring ... align 16".
[[nodiscard]] std::string LayoutText(const LayoutKey& layout);
// "target attention causal rows 8 backend flashmla", with "window 4096" where there is one.
[[nodiscard]] std::string BehaviourText(const BehaviourKey& behaviour);
// "per_token", "bounded_window 4096", "per_sequence x 8".
[[nodiscard]] std::string LifetimeText(const LifetimeKey& lifetime);
// Ascending ids of one role, runs shortened: "target.0-2,4-6"; a second cache is "target.3.1".
[[nodiscard]] std::string LayerIdsText(std::span<const LayerId> ids);
// "64, 128".
[[nodiscard]] std::string NumbersText(std::span<const std::int64_t> numbers);
// "a, b".
[[nodiscard]] std::string JoinedText(std::span<const std::string> words);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_STAGE_TEXT_H_
