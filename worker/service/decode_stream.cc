#include "worker/service/decode_stream.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/rpc/call.h"
#include "common/rpc/status_codec.h"
#include "worker/engine/random_draw.h"
#include "worker/service/convert_decode.h"

namespace kvasir {
namespace {

using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

absl::Status Stopping() {
  return MakeError({.code = absl::StatusCode::kUnavailable,
                    .reason = reason::kServerStopping,
                    .message = "the worker is stopping; use another one",
                    .retry_after_ms = 1000});
}

absl::Status TooSlow(std::size_t waiting) {
  return MakeError(
      {.code = absl::StatusCode::kResourceExhausted,
       .reason = reason::kClientTooSlow,
       .message = absl::StrFormat("%d events wait for the client to read them; read faster, or open more "
                                  "streams",
                                  waiting)});
}

// The errors that end the stream instead of one request: the client must go elsewhere.
bool EndsStream(const absl::Status& status) { return ReasonOf(status) == reason::kNotLeader; }

}  // namespace

class DecodeStream final : public DecodeSink, public std::enable_shared_from_this<DecodeStream> {
 public:
  // The gRPC side. It goes away in OnDone; the stream then forgets it.
  class Call;

  DecodeStream(WorkerNode& node, DecodeStreams& streams) : node_(node), streams_(streams) {}
  ~DecodeStream() override { streams_.Closed(this); }

  bool Push(const DecodeEvent& event) override;
  void Fail(const std::vector<std::int64_t>& tags, const absl::Status& cause) override;

  void Attach(Call* call) {
    const std::lock_guard lock(mutex_);
    call_ = call;
  }
  // By the call, on gRPC's threads.
  void ReadNext(grpc::ByteBuffer* into);
  void Received(const grpc::ByteBuffer& bytes);
  void HalfClosed();
  void Written();
  void Gone();  // cancelled or done: nobody listens
  void EndIfIdle();

 private:
  struct OpenRequest {
    std::shared_ptr<LeaderLoop> loop;
    bool cancelled = false;  // once is enough
  };
  absl::Status Join(const worker::v1::JoinRequest& join);
  void Cancel(const worker::v1::CancelRequest& cancel);
  void Refuse(std::int64_t tag, const absl::Status& status);
  bool IsFullLocked();
  void PushLocked(const DecodeEvent& event);
  void PumpLocked();
  void FinishLocked(const absl::Status& status);
  void MaybeFinishLocked();

  WorkerNode& node_;
  DecodeStreams& streams_;
  std::mutex mutex_;
  Call* call_ = nullptr;
  std::map<std::int64_t, OpenRequest> open_;  // by tag
  std::deque<grpc::ByteBuffer> queue_;
  bool writing_ = false;
  bool half_closed_ = false;
  bool ending_ = false;                 // after the last request
  std::optional<absl::Status> finish_;  // once decided; sent when the queue is empty
  bool finished_ = false;
  grpc::ByteBuffer out_;
};

class DecodeStream::Call final : public Reactor {
 public:
  explicit Call(std::shared_ptr<DecodeStream> stream) : stream_(std::move(stream)) {
    stream_->Attach(this);
    stream_->ReadNext(&in_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      stream_->HalfClosed();
      return;
    }
    stream_->Received(in_);
    in_.Clear();
    stream_->ReadNext(&in_);
  }
  void OnWriteDone(bool ok) override { ok ? stream_->Written() : stream_->Gone(); }
  void OnCancel() override { stream_->Gone(); }
  void OnDone() override {
    stream_->Gone();
    delete this;
  }

 private:
  const std::shared_ptr<DecodeStream> stream_;
  grpc::ByteBuffer in_;
};

// Nothing may be started on a call after its Finish, and Finish may come from any thread.
void DecodeStream::ReadNext(grpc::ByteBuffer* into) {
  const std::lock_guard lock(mutex_);
  if (call_ != nullptr && !finished_) call_->StartRead(into);
}

bool DecodeStream::Push(const DecodeEvent& event) {
  const std::lock_guard lock(mutex_);
  if (call_ == nullptr || finish_.has_value()) return false;
  if (IsFullLocked()) return false;
  PushLocked(event);
  return true;
}

// A full queue ends the stream.
bool DecodeStream::IsFullLocked() {
  if (queue_.size() < streams_.queue_max_) return false;
  queue_.clear();
  FinishLocked(TooSlow(streams_.queue_max_));
  return true;
}

void DecodeStream::PushLocked(const DecodeEvent& event) {
  const bool last =
      std::holds_alternative<RequestFinished>(event.what) || std::holds_alternative<absl::Status>(event.what);
  if (last) open_.erase(event.tag);
  queue_.push_back(SerializeMessage(FromDecodeEvent(event)));
  PumpLocked();
  MaybeFinishLocked();
}

void DecodeStream::Fail(const std::vector<std::int64_t>& tags, const absl::Status& cause) {
  const std::lock_guard lock(mutex_);
  if (call_ == nullptr || finish_.has_value()) return;
  for (const std::int64_t tag : tags) {
    open_.erase(tag);
    queue_.push_back(SerializeMessage(FromDecodeEvent({tag, cause})));
  }
  FinishLocked(cause);
}

void DecodeStream::PumpLocked() {
  if (call_ == nullptr || writing_ || finished_) return;
  if (!queue_.empty()) {
    out_ = queue_.front();
    queue_.pop_front();
    writing_ = true;
    call_->StartWrite(&out_);
  } else if (finish_.has_value()) {
    finished_ = true;
    call_->Finish(ToGrpcStatus(*finish_));
  }
}

void DecodeStream::FinishLocked(const absl::Status& status) {
  if (!finish_.has_value()) finish_ = status;
  PumpLocked();
}

void DecodeStream::MaybeFinishLocked() {
  if (!open_.empty()) return;
  if (half_closed_) FinishLocked(absl::OkStatus());
  if (ending_) FinishLocked(Stopping());
}

void DecodeStream::Written() {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  PumpLocked();
}

void DecodeStream::HalfClosed() {
  const std::lock_guard lock(mutex_);
  half_closed_ = true;
  MaybeFinishLocked();
}

void DecodeStream::EndIfIdle() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  MaybeFinishLocked();
}

void DecodeStream::Gone() {
  std::set<std::shared_ptr<LeaderLoop>> loops;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [tag, request] : open_) loops.insert(request.loop);
    open_.clear();
    queue_.clear();
    writing_ = false;
    // A cancelled call still wants its Finish; a call that is done never comes back.
    if (call_ != nullptr && !finished_) {
      finished_ = true;
      finish_ = absl::CancelledError("the client is gone");
      call_->Finish(ToGrpcStatus(*finish_));
    }
    call_ = nullptr;
  }
  for (const std::shared_ptr<LeaderLoop>& loop : loops) loop->Drop(shared_from_this());
}

void DecodeStream::Refuse(std::int64_t tag, const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  if (call_ == nullptr || finish_.has_value()) return;
  if (EndsStream(status)) {
    FinishLocked(status);
    return;
  }
  if (IsFullLocked()) return;
  // Not through PushLocked: the tag may belong to another request, which stays open.
  queue_.push_back(SerializeMessage(FromDecodeEvent({tag, status})));
  PumpLocked();
  MaybeFinishLocked();
}

void DecodeStream::Received(const grpc::ByteBuffer& bytes) {
  const absl::StatusOr<worker::v1::DecodeRequest> request = ParseMessage<worker::v1::DecodeRequest>(bytes);
  absl::Status broken;
  if (!request.ok()) {
    broken = request.status();
  } else if (request->has_join()) {
    if (const absl::Status status = Join(request->join()); !status.ok())
      Refuse(request->join().tag(), status);
    return;
  } else if (request->has_cancel()) {
    Cancel(request->cancel());
    return;
  } else {
    broken = FieldError(reason::kMissingField, "action", "action is absent; send join or cancel");
  }
  // A message without a tag cannot be answered for one request.
  const std::lock_guard lock(mutex_);
  FinishLocked(broken);
}

absl::Status DecodeStream::Join(const worker::v1::JoinRequest& join) {
  if (const absl::Status tag = CheckTag("tag", join.tag()); !tag.ok()) return tag;
  absl::StatusOr<SequenceRequest> request = ToSequenceRequest(join, streams_.FreshSeed());
  if (!request.ok()) return request.status();
  const absl::StatusOr<JoinTerms> terms = ToJoinTerms(join);
  if (!terms.ok()) return terms.status();
  const absl::StatusOr<std::shared_ptr<LeaderLoop>> loop = node_.Leader(join.deployment());
  if (!loop.ok()) return loop.status();
  {
    const std::lock_guard lock(mutex_);
    if (call_ == nullptr || finish_.has_value()) return absl::OkStatus();
    if (open_.size() >= kStreamRequestsMax) {
      return MakeError(
          {.code = absl::StatusCode::kResourceExhausted,
           .reason = reason::kTooManyRequests,
           .message = absl::StrFormat("the stream has %d open requests, as many as it may; open another "
                                      "stream",
                                      open_.size())});
    }
    if (!open_.emplace(join.tag(), OpenRequest{.loop = *loop}).second) {
      return FieldError(reason::kDuplicateItem, "tag",
                        absl::StrFormat("tag %d is open already; give every request its own", join.tag()));
    }
  }
  const absl::Status joined = (*loop)->Join(join.tag(), *std::move(request), shared_from_this(), *terms);
  bool gone = false;
  {
    const std::lock_guard lock(mutex_);
    gone = call_ == nullptr || finish_.has_value();
    if (!joined.ok()) open_.erase(join.tag());
  }
  // The call may have ended meanwhile, and its Drop have come before this join.
  if (joined.ok() && gone) (*loop)->Drop(shared_from_this());
  return joined;
}

void DecodeStream::Cancel(const worker::v1::CancelRequest& cancel) {
  std::shared_ptr<LeaderLoop> loop;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(cancel.tag());
    if (found == open_.end()) return;  // it has finished meanwhile, or never was
    if (std::exchange(found->second.cancelled, true)) return;
    loop = found->second.loop;
  }
  loop->Cancel(cancel.tag(), shared_from_this());
}

std::uint64_t DecodeStreams::FreshSeed() {
  return static_cast<std::uint64_t>(UniformDraw({.seed = started_at_, .position = seeds_++}) * 0x1p53);
}

Reactor* DecodeStreams::Open(WorkerNode& node) {
  const auto stream = std::make_shared<DecodeStream>(node, *this);
  auto* call = new DecodeStream::Call(stream);  // gRPC's until OnDone, which deletes it
  bool ending = false;
  {
    const std::lock_guard lock(mutex_);
    open_.emplace(stream.get(), stream);
    ending = ending_;
  }
  if (ending) stream->EndIfIdle();
  return call;
}

void DecodeStreams::Closed(const DecodeStream* stream) {
  const std::lock_guard lock(mutex_);
  open_.erase(stream);
}

void DecodeStreams::EndIdle() {
  std::vector<std::shared_ptr<DecodeStream>> streams;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& [raw, stream] : open_) {
      if (auto alive = stream.lock()) streams.push_back(std::move(alive));
    }
  }
  for (const std::shared_ptr<DecodeStream>& stream : streams) stream->EndIfIdle();
}

}  // namespace kvasir
