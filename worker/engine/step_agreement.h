// The end of a step: ranks tell each other whether they met NaN, and that they computed the same tokens and
// log-probabilities. One tiny all-gather, so that one rank's fault fails the step everywhere, with one and
// the same status.
#ifndef KVASIR_WORKER_ENGINE_STEP_AGREEMENT_H_
#define KVASIR_WORKER_ENGINE_STEP_AGREEMENT_H_

#include <optional>

#include "absl/status/status.h"
#include "common/plan/plan.h"
#include "worker/engine/communicator.h"
#include "worker/engine/step_plan.h"

namespace kvasir {

// DataLoss (reason NOT_A_NUMBER, "rank r: NON_FINITE: <pass> of step s ...") where a rank had a fault, naming
// the lowest such rank; Internal where a rank's outcome differs from rank 0's; else the communicator's error.
// The first is agreed: every rank returns it and the communicator stays usable. A null communicator is one
// rank.
[[nodiscard]] absl::Status AgreeOnStep(Communicator* communicator, const StepOutcome& outcome,
                                       std::optional<Pass> fault);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_STEP_AGREEMENT_H_
