// Another worker that takes part in the steps of a plan, as rank 0's worker sees it.
#ifndef KVASIR_WORKER_SERVICE_STEP_PEER_H_
#define KVASIR_WORKER_SERVICE_STEP_PEER_H_

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "worker/engine/step_plan.h"

namespace kvasir {

class StepPeer {
 public:
  using Done = std::function<void(absl::StatusOr<StepOutcome>)>;
  virtual ~StepPeer() = default;
  [[nodiscard]] virtual std::string name() const = 0;  // host:port
  // Sends the step and returns; `done` is called once, on any thread. One step at a time.
  virtual void Start(const StepPlan& step, std::chrono::milliseconds timeout, Done done) = 0;
  // Makes the step that is out end soon.
  virtual void Cancel() = 0;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_STEP_PEER_H_
