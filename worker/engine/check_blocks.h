// Judges the blocks that a StepPlan names: whose they are, which parents are zeroed, and which blocks move.
#ifndef KVASIR_WORKER_ENGINE_CHECK_BLOCKS_H_
#define KVASIR_WORKER_ENGINE_CHECK_BLOCKS_H_

#include "absl/status/status.h"
#include "common/plan/plan.h"
#include "worker/engine/step_plan.h"

namespace kvasir {

// InvalidArgument naming the field, its value and what is allowed: no block is given twice, no parent is used
// by two pools, none that holds committed tokens is zeroed, and a move empties one parent of its pool into
// distinct blocks of others. Requires block tables that CheckStep found to be as long as the plan says.
[[nodiscard]] absl::Status CheckBlocks(const Plan& plan, const StepPlan& step);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_CHECK_BLOCKS_H_
