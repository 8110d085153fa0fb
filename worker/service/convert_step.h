// Steps and their outcomes, both ways: rank 0's worker sends them, the others receive them.
#ifndef KVASIR_WORKER_SERVICE_CONVERT_STEP_H_
#define KVASIR_WORKER_SERVICE_CONVERT_STEP_H_

#include "absl/status/statusor.h"
#include "kvasir/worker/v1/step.pb.h"
#include "worker/engine/step_plan.h"

namespace kvasir {

// Shape and limits only; whether the blocks, lengths and tokens fit the plan is the engine's check.
[[nodiscard]] absl::StatusOr<StepPlan> ToStepPlan(const worker::v1::StepPlan& message);
[[nodiscard]] worker::v1::StepPlan FromStepPlan(const StepPlan& step);
[[nodiscard]] absl::StatusOr<StepOutcome> ToStepOutcome(const worker::v1::StepOutcome& message);
[[nodiscard]] worker::v1::StepOutcome FromStepOutcome(const StepOutcome& outcome);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_CONVERT_STEP_H_
