// Stage 7: the plan itself, with every byte of the arena attributed at the full load of context_tokens.
#ifndef KVASIR_PLANNER_CORE_ASSEMBLED_H_
#define KVASIR_PLANNER_CORE_ASSEMBLED_H_

#include <string_view>

#include "common/plan/plan.h"
#include "planner/core/graphed.h"

namespace kvasir {

// `ruleset` is the name with its version: "native/1". The stage's text is PlanToText and its Verify is
// VerifyPlan.
//
// Owners, summing to the arena, when as many sequences of context_tokens are live as are admitted:
//   payload.<group>        rows of tokens, or committed states
//   speculative.<group>    snapshots, or rings for replay
//   padding.<pool>         rows of a block without a token, bytes between pages, parts shorter than the
//   longest prefill.<pool>         blocks kept for the prefill chunk in flight slack.<pool>           from
//   the end of a block to its stride partial_parent.<pool>  blocks of the pool's last parent that no sequence
//   needs null_parent            parent 0 free_parents           parents that no further sequence could use
//   unassigned             what is left of the arena after whole parents
[[nodiscard]] Plan Assemble(const Graphed& graphed, std::string_view ruleset);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_ASSEMBLED_H_
