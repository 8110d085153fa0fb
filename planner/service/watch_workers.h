// Whether a deployment's workers still run what the planner believes they run.
#ifndef KVASIR_PLANNER_SERVICE_WATCH_WORKERS_H_
#define KVASIR_PLANNER_SERVICE_WATCH_WORKERS_H_

#include <chrono>

#include "absl/status/status.h"
#include "planner/dispatch/deployment_record.h"
#include "planner/dispatch/worker_caller.h"

namespace kvasir {

// Asks all workers at once and waits at most `timeout`. PEER_UNREACHABLE, RANK_LOST (with the worker's own
// words) or PLAN_RETIRED (it runs something else, as after its restart) of the first worker in rank order
// that does not serve.
[[nodiscard]] absl::Status CheckServing(WorkerCaller& caller, const std::string& deployment,
                                        const ServingPlan& serving, std::chrono::milliseconds timeout);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_WATCH_WORKERS_H_
