// 2026-11's path for GLM-5.3-Flash: recurrent states live in the slots of the latent layers, and the
// indexers' tails in those of the indexers.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_SHARED_SLOTS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_SHARED_SLOTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// The groups, or nullopt where the layers have another shape: it takes mamba layers, and otherwise (tails
// apart) mla layers of which at least one compresses tokens. ValueError: a state larger than the latent page,
// or a pipeline stage with mamba and no mla layers. AssertionError: unequal pages, or a layer name without
// exactly one number.
[[nodiscard]] EngineResult<std::optional<std::vector<EngineGroup>>> GroupSharedSlots(
    SpecTable& table, const LayerSpecs& layers, const EngineConfig& config,
    const std::vector<EngineLayer>& names);

// The slots of groups of that shape, as the engine recognises them again after projection.
struct SharedSlots {
  std::size_t latent_group = 0;                // index of the groups
  std::vector<std::size_t> mamba_groups = {};  // indices of the groups
  std::optional<std::size_t> tail_group = {};  // index of the groups
  std::vector<std::int32_t> mla_layers = {};
  std::vector<std::int32_t> indexer_layers = {};
  std::int64_t mla_page = 0;      // bytes
  std::int64_t indexer_page = 0;  // bytes
};

[[nodiscard]] EngineResult<std::optional<SharedSlots>> RecognizeSharedSlots(
    const SpecTable& table, const std::vector<EngineGroup>& groups);

// tokens_per_state above 1, as an indexer's; exactly 1, as a latent layer's.
[[nodiscard]] inline bool Compresses(const EngineSpec& spec) {
  return spec.tokens_per_state.tokens > spec.tokens_per_state.states;
}
[[nodiscard]] inline bool KeepsEach(const EngineSpec& spec) {
  return spec.tokens_per_state == TokensPerState{};
}

// Bytes of one block: the slots of all mla and indexer layers.
[[nodiscard]] EngineResult<std::int64_t> SlotBytes(const SharedSlots& slots);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_SHARED_SLOTS_H_
