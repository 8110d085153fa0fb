// How requests come into rank 0's loop and leave it before their end: admission in order of arrival, waiting
// for room, deadlines, cancellation.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "worker/service/leader_loop.h"

namespace kvasir {
namespace {

absl::Status DeadlineExpired(const JoinTerms& terms, const char* when) {
  return MakeError({.code = absl::StatusCode::kDeadlineExceeded,
                    .reason = reason::kDeadlineExpired,
                    .message = absl::StrFormat(
                        "the request's timeout of %d ms ended %s; give it more time, or fewer tokens",
                        std::chrono::ceil<std::chrono::milliseconds>(terms.timeout).count(), when)});
}

absl::Status OthersWait(std::size_t waiting) {
  return MakeError({.code = absl::StatusCode::kResourceExhausted,
                    .reason = reason::kTooManyRequests,
                    .message = absl::StrFormat(
                        "%d requests wait for room before this one; set wait, or try later", waiting)});
}

absl::Status QueueIsFull(std::size_t most) {
  return MakeError({.code = absl::StatusCode::kResourceExhausted,
                    .reason = reason::kServerBusy,
                    .message = absl::StrFormat("%d requests wait already, as many as may; try later", most),
                    .retry_after_ms = 1000});
}

}  // namespace

absl::Status LeaderLoop::Join(std::int64_t tag, SequenceRequest request, std::shared_ptr<DecodeSink> sink,
                              const JoinTerms& terms) {
  if (request.speculate && options_.draft_tokens == 0) {
    return FieldError(reason::kConflictingFields, "speculate", "the plan has no draft; leave speculate off");
  }
  std::shared_ptr<const Scheduler> scheduler;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return closed_;
    scheduler = options_.scheduler;
  }
  // Before it waits, so that a request that could never run takes no room; and without the lock, which steps
  // need too.
  if (const absl::Status checked = scheduler->CheckRequest(request); !checked.ok()) return checked;
  const std::lock_guard lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (joining_ >= options_.waiting_max) return QueueIsFull(options_.waiting_max);
  ++joining_;
  commands_.emplace_back(JoinCommand{tag, std::move(request), std::move(sink), terms, options_.now()});
  changed_.notify_all();
  return absl::OkStatus();
}

void LeaderLoop::Do(JoinCommand& command) {
  // In order of arrival: nobody overtakes those who wait, or a long request might wait for ever.
  if (waiting_.empty() && Admit(command)) return;
  if (!command.terms.wait) {
    Send(command.tag, command.sink, OthersWait(waiting_.size()));
  } else if (waiting_.size() >= options_.waiting_max) {
    Send(command.tag, command.sink, QueueIsFull(options_.waiting_max));
  } else {
    waiting_.push_back(std::move(command));
  }
}

bool LeaderLoop::Admit(JoinCommand& command) {
  const std::chrono::nanoseconds now = options_.now();
  const absl::StatusOr<SequenceId> id = options_.scheduler->Join(command.request);
  if (!id.ok()) {
    // Also for one who does not wait and will ask again.
    if (absl::IsResourceExhausted(id.status())) options_.scheduler->MakeRoomFor(command.request);
    // Where nothing runs, there is nothing to wait for.
    if (absl::IsResourceExhausted(id.status()) && command.terms.wait && options_.scheduler->running() > 0) {
      return false;
    }
    Send(command.tag, command.sink, id.status());
    return true;
  }
  Session session{std::move(command), {}};
  session.join.request.prompt = std::vector<std::int32_t>();
  session.totals.queue_time = now - session.join.joined_at;
  Send(session.join.tag, session.join.sink, RequestJoined{options_.key, session.join.request.sampling.seed});
  sessions_.emplace(*id, std::move(session));
  return true;
}

void LeaderLoop::AdmitWaiting() {
  while (!waiting_.empty() && Admit(waiting_.front())) waiting_.pop_front();
}

void LeaderLoop::RefuseWaiting(const absl::Status& cause) {
  for (const JoinCommand& join : std::exchange(waiting_, {})) Send(join.tag, join.sink, cause);
}

void LeaderLoop::ExpireLate() {
  const std::chrono::nanoseconds now = options_.now();
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (!it->ExpiredAt(now)) {
      ++it;
      continue;
    }
    Send(it->tag, it->sink, DeadlineExpired(it->terms, "before there was room"));
    it = waiting_.erase(it);
  }
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const JoinCommand& join = it->second.join;
    if (!join.ExpiredAt(now)) {
      ++it;
      continue;
    }
    (void)options_.scheduler->Cancel(it->first);  // a session is a running sequence
    Send(join.tag, join.sink, DeadlineExpired(join.terms, "before its last token"));
    it = sessions_.erase(it);
  }
}

void LeaderLoop::Do(const CancelCommand& command) {
  const auto meant = [&command](const JoinCommand& join) {
    return join.sink == command.sink && (!command.tag.has_value() || join.tag == *command.tag);
  };
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (!meant(*it)) {
      ++it;
      continue;
    }
    RequestFinished never_ran{.reason = EndReason::kCancelled};
    never_ran.queue_time = options_.now() - it->joined_at;
    if (command.tag.has_value()) Send(it->tag, it->sink, never_ran);
    it = waiting_.erase(it);
  }
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    Session& session = it->second;
    if (!meant(session.join)) {
      ++it;
      continue;
    }
    (void)options_.scheduler->Cancel(it->first);  // a session is a running sequence
    session.totals.reason = EndReason::kCancelled;
    if (command.tag.has_value()) Send(session.join.tag, session.join.sink, session.totals);
    it = sessions_.erase(it);
  }
}

}  // namespace kvasir
