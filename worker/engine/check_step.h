// Judges a StepPlan against the plan before anything runs. A StepPlan may come from a peer: whatever stands
// in it, the answer is a status, and a step that passes can neither read nor write outside its own blocks.
#ifndef KVASIR_WORKER_ENGINE_CHECK_STEP_H_
#define KVASIR_WORKER_ENGINE_CHECK_STEP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/plan/plan.h"
#include "worker/engine/step_plan.h"

namespace kvasir {

// InvalidArgument naming the field, its value and what is allowed. Checks the kind against the plan, counts,
// distinct sequences, pending rows against the plan's rollback, committed < limit <= context_tokens, chunks
// at multiples of prefill_chunk, sampling parameters, token ids below `vocab`, the number of table columns,
// every block id against its pool, and check_blocks.h. Epoch, plan_id and step number are the engine's own
// business.
[[nodiscard]] absl::Status CheckStep(const Plan& plan, std::int64_t vocab, const StepPlan& step);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_CHECK_STEP_H_
