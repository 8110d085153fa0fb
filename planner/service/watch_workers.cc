#include "planner/service/watch_workers.h"

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

absl::Status Judge(const WorkerTarget& worker, const WorkerReply& reply, const ServingPlan& serving) {
  if (!reply.status.ok()) {
    return reply.status;
  }
  if (reply.running_epoch == serving.epoch) {
    return absl::OkStatus();
  }
  TypedError error{.code = absl::StatusCode::kUnavailable,
                   .reason = reason::kRankLost,
                   .metadata = {{"worker", worker.address}}};
  if (!reply.failure.empty()) {
    error.message = absl::StrFormat("worker %s: %s; apply again", worker.address, reply.failure);
  } else {
    error.reason = reason::kPlanRetired;
    error.message = absl::StrFormat("worker %s no longer runs epoch %d, as after a restart; apply again",
                                    worker.address, serving.epoch.value());
  }
  return MakeError(error);
}

}  // namespace

absl::Status CheckServing(WorkerCaller& caller, const std::string& deployment, const ServingPlan& serving,
                          std::chrono::milliseconds timeout) {
  std::vector<std::future<WorkerReply>> replies;
  for (const WorkerTarget& worker : serving.spec.workers) {
    // Shared with the callback, which may come after this function has stopped waiting.
    auto promise = std::make_shared<std::promise<WorkerReply>>();
    replies.push_back(promise->get_future());
    caller.Call(
        {.deployment = deployment, .target = worker, .kind = CallKind::kQuery, .timeout_ms = timeout.count()},
        [promise](WorkerReply reply) { promise->set_value(std::move(reply)); });
  }
  absl::Status lost;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const absl::Status status = Judge(serving.spec.workers[i], replies[i].get(), serving);
    // That a peer was lost explains less than the peer that does not answer.
    if (!status.ok() &&
        (lost.ok() || (ReasonOf(lost) == reason::kRankLost && ReasonOf(status) != reason::kRankLost))) {
      lost = status;
    }
  }
  return lost;
}

}  // namespace kvasir
