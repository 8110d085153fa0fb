// One layer as the planner sees it: who it is, and its answers to the three questions of common/plan/keys.h.
#ifndef KVASIR_PLANNER_CORE_LAYER_SPEC_H_
#define KVASIR_PLANNER_CORE_LAYER_SPEC_H_

#include <cstdint>
#include <string>

#include "common/plan/keys.h"

namespace kvasir {

struct LayerSpec {
  LayerId id;
  // The layer's place in an engine's list. Only the `vllm-*` rulesets read it; it never enters a native plan.
  std::int64_t registration_index = 0;
  std::string name;   // for people, unique: "target.layers.3"
  std::string mixer;  // a word for group names: "mla", "kda", "attention", "mamba2"
  // Per rank, after tensor parallelism. `ring` holds what a replay would need; whether it is kept is decided
  // later.
  LayoutKey layout;
  // block_rows: N + 1 for target layers (1 without a draft), N or N + 1 for draft layers.
  BehaviourKey behaviour;
  // kPerSequence: copies is 1; snapshots are added when the rollback is decided.
  LifetimeKey lifetime;
  // Of one attention call on one rank, gathered over context ranks; 0: not said, and not checked.
  std::int64_t query_heads = 0;
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_LAYER_SPEC_H_
