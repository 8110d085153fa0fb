// One step on all workers of a plan at once, seen from rank 0's.
#ifndef KVASIR_WORKER_SERVICE_RUN_STEP_H_
#define KVASIR_WORKER_SERVICE_RUN_STEP_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/step_plan.h"
#include "worker/service/step_peer.h"

namespace kvasir {

struct StepRunner {
  std::function<absl::StatusOr<StepOutcome>(const StepPlan&)> execute;  // the local ranks
  std::function<void(const std::string&)> abort;
  std::chrono::milliseconds timeout{30'000};
};

// The outcome that all agree on. DataLoss (NOT_A_NUMBER) where the step's values are worthless and everything
// else is sound; any other error means that the plan cannot serve any more, RANK_LOST where a worker does not
// answer. A failure anywhere aborts the others, so that this returns soon.
[[nodiscard]] absl::StatusOr<StepOutcome> RunStepEverywhere(
    const StepRunner& local, const std::vector<std::unique_ptr<StepPeer>>& peers, const StepPlan& step);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_RUN_STEP_H_
