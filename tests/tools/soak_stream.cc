#include "tests/tools/soak_stream.h"

#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_codec.h"

namespace kvasir::soak {
namespace {

namespace wire = worker::v1;
using std::chrono::milliseconds;

// A stream that lasts longer is stuck.
constexpr std::chrono::minutes kLongest{15};
// A request that can be computed and whose client reads gets its next tokens sooner, whoever else does not
// read.
constexpr std::chrono::seconds kLongestWait{30};
// Wrong requests, whose answers fill the queue of a client that does not read, and the windows of the
// transport.
constexpr std::int64_t kWrongRequests = 8'000;
constexpr std::int64_t kWrongTag = 1'000'000;

milliseconds Since(SoakStream::Clock::time_point begin) {
  return std::chrono::duration_cast<milliseconds>(SoakStream::Clock::now() - begin);
}

wire::JoinRequest MessageOf(const RequestScript& script, std::int64_t tag) {
  wire::JoinRequest join = Ask(script.prompt, script.way);
  join.set_tag(tag);
  join.set_max_tokens(script.limit);
  join.mutable_stop_token_ids()->Assign(script.stops.begin(), script.stops.end());
  join.mutable_sampling()->set_logprobs(script.logprobs);
  join.set_wait(script.wait);
  if (script.timeout.count() > 0) {
    join.mutable_timeout()->set_seconds(script.timeout.count() / 1000);
    join.mutable_timeout()->set_nanos(static_cast<int>(script.timeout.count() % 1000) * 1'000'000);
  }
  return join;
}

}  // namespace

SoakStream::SoakStream(wire::WorkerService::Stub& leader, const StreamScript& script, const Answers* answers,
                       Tally& tally)
    : leader_(leader), script_(script), answers_(answers), tally_(tally) {
  SetTimeout(context_, script.kind == StreamKind::kDeadline ? script.time : milliseconds(kLongest));
}

void SoakStream::Play() {
  call_ = leader_.Decode(&context_);
  std::thread reader([this] { Read(); });
  Write();
  reader.join();
  Judge(FromGrpcStatus(call_->Finish()));
}

// What the client does by the clock, in order.
std::vector<SoakStream::Act> SoakStream::Plan() const {
  std::vector<Act> acts;
  milliseconds at{0};
  std::int64_t tag = 0;
  for (const RequestScript& request : script_.requests) {
    at += request.pause;
    acts.push_back({at, Act::Kind::kJoin, ++tag});
    if (request.cancel_after_time.has_value()) {
      acts.push_back({at + *request.cancel_after_time, Act::Kind::kCancel, tag});
    }
  }
  if (script_.kind == StreamKind::kDrops && script_.time.count() > 0) {
    acts.push_back({script_.time, Act::Kind::kDrop});
  }
  std::sort(acts.begin(), acts.end(), [](const Act& a, const Act& b) {
    return std::tie(a.at, a.tag, a.kind) < std::tie(b.at, b.tag, b.kind);
  });
  return acts;
}

void SoakStream::Write() {
  const Clock::time_point begin = Clock::now();
  for (const Act& act : Plan()) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_until(lock, begin + act.at, [this] { return over_; })) return;
    }
    if (!Do(act)) return;
  }
  if (script_.kind == StreamKind::kDeaf) {
    FillQueue();
    return;
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || !ReaderMayCancel(); });
  }
  const std::lock_guard lock(write_mutex_);
  call_->WritesDone();
}

// Nothing may be written after the half-close.
bool SoakStream::ReaderMayCancel() const {
  return std::any_of(requests_.begin(), requests_.end(), [](const auto& entry) {
    const Request& request = entry.second;
    return request.script.cancel_after_events.has_value() && request.check.end() == End::kOpen;
  });
}

bool SoakStream::Do(const Act& act) {
  switch (act.kind) {
    case Act::Kind::kJoin:
      return Join(act.tag);
    case Act::Kind::kCancel:
      return Cancel(act.tag);
    case Act::Kind::kDrop:
      break;
  }
  context_.TryCancel();
  return true;
}

bool SoakStream::Join(std::int64_t tag) {
  const RequestScript& request = script_.requests[static_cast<std::size_t>(tag) - 1];
  wire::DecodeRequest message;
  *message.mutable_join() = MessageOf(request, tag);
  const Answer* answer = answers_ == nullptr ? nullptr : &answers_->At(request.prompt, request.way);
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    requests_.emplace(tag, Request{request, RequestCheck(message.join(), answer, now), now});
  }
  tally_.Arrived();
  const std::lock_guard lock(write_mutex_);
  return call_->Write(message);
}

bool SoakStream::Cancel(std::int64_t tag) {
  {
    const std::lock_guard lock(mutex_);
    requests_.at(tag).check.CancelSent();
  }
  wire::DecodeRequest message;
  message.mutable_cancel()->set_tag(tag);
  const std::lock_guard lock(write_mutex_);
  return call_->Write(message);
}

// Stops reading, and asks for what is refused at once, until the answers must have filled every queue. The
// server can say so only when its client reads again.
void SoakStream::FillQueue() {
  {
    const std::lock_guard lock(mutex_);
    deaf_ = true;
  }
  wire::DecodeRequest message;
  message.mutable_join()->set_tag(kWrongTag);
  message.mutable_join()->set_deployment(kDeployment);
  for (std::int64_t i = 0; i < kWrongRequests; ++i) {
    const std::lock_guard lock(write_mutex_);
    if (!call_->Write(message)) break;
  }
  const std::lock_guard lock(mutex_);
  deaf_ = false;
  ForgetWaits();
  changed_.notify_all();
}

void SoakStream::ForgetWaits() {
  for (auto& [tag, request] : requests_) request.last_event = Clock::now();
}

void SoakStream::Read() {
  wire::DecodeResponse event;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !deaf_; });
    }
    if (!call_->Read(&event)) break;
    Take(event);
    PauseOrDrop();
  }
  const std::lock_guard lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

void SoakStream::Take(const wire::DecodeResponse& event) {
  if (event.tag() == kWrongTag && script_.kind == StreamKind::kDeaf) {
    if (event.error().reason() != reason::kMissingField) Fault(kWrongTag, event.ShortDebugString());
    return;
  }
  std::string wrong;
  bool cancel = false;
  {
    const std::lock_guard lock(mutex_);
    ++events_;
    const auto found = requests_.find(event.tag());
    if (found == requests_.end()) {
      wrong = "nobody sent it: " + event.ShortDebugString();
    } else {
      Request& request = found->second;
      const bool was_running = request.check.running();
      const Clock::time_point now = Clock::now();
      const milliseconds waited = was_running ? Since(request.last_event) : milliseconds(0);
      request.last_event = now;
      wrong = request.check.Take(event, now);
      if (waited > kLongestWait) wrong += absl::StrFormat(" no event for %d ms", waited.count());
      tally_.Said(event.tokens().token_ids_size(), waited);
      if (!was_running && request.check.running()) tally_.Joined();
      if (request.check.end() != End::kOpen) {
        tally_.Ended(request.check, was_running);
        changed_.notify_all();
      }
      cancel = request.check.running() && request.script.cancel_after_events == request.check.events();
    }
  }
  if (!wrong.empty()) Fault(event.tag(), wrong);
  if (cancel) (void)Cancel(event.tag());  // false: the stream is over, as the next read says
}

void SoakStream::PauseOrDrop() {
  if (events_ != script_.after_events) return;
  if (script_.kind == StreamKind::kDrops && script_.time.count() == 0) context_.TryCancel();
  if (script_.kind != StreamKind::kPauses) return;
  std::this_thread::sleep_for(script_.time);
  const std::lock_guard lock(mutex_);
  ForgetWaits();
}

void SoakStream::Judge(const absl::Status& status) {
  const StreamKind kind = script_.kind;
  const bool cut = (kind == StreamKind::kDrops && absl::IsCancelled(status)) ||
                   (kind == StreamKind::kDeadline && absl::IsDeadlineExceeded(status)) ||
                   (kind == StreamKind::kDeaf && ReasonOf(status) == reason::kClientTooSlow);
  if (!cut && (!status.ok() || kind == StreamKind::kDeaf)) {
    Fault(0, "the stream ended with " + status.ToString());
  }
  for (auto& [tag, request] : requests_) {
    if (request.check.end() != End::kOpen) continue;
    const bool was_running = request.check.running();
    const std::string wrong = request.check.StreamEnded(cut);
    if (!wrong.empty()) Fault(tag, wrong);
    tally_.Ended(request.check, was_running);
  }
  tally_.StreamEnded(kind);
}

void SoakStream::Fault(std::int64_t tag, const std::string& what) {
  tally_.Fault(absl::StrFormat("stream %d, request %d: %s", script_.number, tag, what));
}

}  // namespace kvasir::soak
