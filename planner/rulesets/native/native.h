// The ruleset `native`: minimum waste, separate behaviour, executable by our workers (DESIGN section 2.1).
#ifndef KVASIR_PLANNER_RULESETS_NATIVE_NATIVE_H_
#define KVASIR_PLANNER_RULESETS_NATIVE_NATIVE_H_

#include "planner/core/ruleset.h"

namespace kvasir::native {

[[nodiscard]] Ruleset NativeRuleset();

// A pool for each (lifetime, sharded over context); in it a group for each (behaviour, layout kind, mixer
// word).
[[nodiscard]] Grouped GroupLayers(Validated validated);

// Pools: per-token, windows, states; sharded before replicated, small windows first. Groups by their first
// layer. Pages lie in a block group after group, layer after layer, each at its alignment.
[[nodiscard]] Packed PackBlocks(Grouped grouped);

// The pages of one block of a pool in that order; `parts` runs of equally many layers, each from offset 0.
[[nodiscard]] std::vector<PlacedPage> PlacePages(const Grouped& grouped, std::size_t pool,
                                                 StateRollback rollback, const BlockCandidate& block);

// Section 2.1's objective for each rollback that is possible, then the rollback that the request names or,
// for auto, the one that admits more sequences of context_tokens; ties: fewer bytes a sequence, then
// snapshots.
[[nodiscard]] std::variant<Sized, DoesNotFit> SizeArena(Packed packed);

}  // namespace kvasir::native

#endif  // KVASIR_PLANNER_RULESETS_NATIVE_NATIVE_H_
