// When two worlds are the same world.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/typed_error.h"
#include "tests/property/apply_world.h"

namespace kvasir::testing {
namespace {

// Whether the planner still waits for this call. Ids themselves do not matter, and left out they let the same
// situation after one more round of polling be recognised.
bool Awaited(const World& world, std::size_t worker, std::int64_t call) {
  return world.planner.has_value() && worker < world.planner->workers.size() &&
         world.planner->workers[worker].call == call;
}

}  // namespace

std::string WorldText(const World& world) {
  std::string text =
      absl::StrFormat("%d %d %d %d|", world.persisting.has_value(), world.now_ms, world.faults_left,
                      world.finished.has_value() ? static_cast<int>(world.finished->code()) : -1);
  if (world.planner.has_value()) {
    const ApplyState& p = *world.planner;
    text += absl::StrFormat("p%d %d %s %d%d%d%d%d%d %d %d %s|", static_cast<int>(p.phase),
                            static_cast<int>(p.next_phase), p.spec.plan_id, p.fallback.has_value(),
                            p.deleting, p.restoring, p.release_first, p.roll_forward, p.commit_sent,
                            p.epoch.value(), p.deadline_ms, ReasonOf(p.failure));
    for (const WorkerSlot& slot : p.workers) {
      text +=
          absl::StrFormat("%d %d %d %d%d%d%d%d %d %d %d,", slot.call != 0, static_cast<int>(slot.call_kind),
                          slot.tries, slot.done, slot.prepared, slot.old, slot.member, slot.unreachable,
                          slot.lease_until_ms, slot.renew_at_ms, slot.seen.max_epoch.value());
    }
  }
  const DeploymentRecord& r = world.store;
  text += absl::StrFormat("s%d %d %d %d %d|", r.max_epoch.value(), r.deleted,
                          r.serving.has_value() ? r.serving->epoch.value() : 0,
                          r.pending.has_value() ? r.pending->epoch.value() : 0,
                          r.pending.has_value() ? static_cast<int>(r.pending->phase) : -1);
  for (const WorldWorker& worker : world.workers) {
    const DeploymentState& w = worker.state;
    text += absl::StrFormat("w%d %d %s %d", worker.life, w.max_epoch.value(), w.max_epoch_plan,
                            w.max_epoch_ended);
    text += w.running.has_value() ? absl::StrFormat(" r%d", w.running->epoch.value()) : "";
    text += w.draining.has_value() ? absl::StrFormat(" d%d", w.draining->key.epoch.value()) : "";
    text += w.pending.has_value() ? absl::StrFormat(" p%d %d %d", w.pending->key.epoch.value(),
                                                    w.pending->ready, w.pending->lease_until_ms)
                                  : "";
    for (const CallAction& call : worker.waiting) {
      text += absl::StrFormat(" c%d", Awaited(world, call.worker, call.call));
    }
    text += "|";
  }
  std::vector<std::string> flying;
  flying.reserve(world.calls.size() + world.replies.size());
  for (const FlyingCall& call : world.calls) {
    flying.push_back(absl::StrFormat("%d>%d %d %d %d", call.action.worker, static_cast<int>(call.action.kind),
                                     call.action.epoch.value(), call.answered,
                                     !call.answered && Awaited(world, call.action.worker, call.action.call)));
  }
  for (const FlyingReply& reply : world.replies) {
    flying.push_back(absl::StrFormat("%d<%d %s %d %d", reply.worker, Awaited(world, reply.worker, reply.call),
                                     reply.reason, reply.seen.max_epoch.value(), reply.seen.holds_memory));
  }
  std::sort(flying.begin(), flying.end());
  for (const std::string& one : flying) {
    text += one + ";";
  }
  return text;
}

}  // namespace kvasir::testing
