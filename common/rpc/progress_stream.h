// A server-streaming call whose messages come from another thread than gRPC's: progress of something that
// goes on when the stream breaks. Messages are queued without bound, so the producer must send few.
#ifndef KVASIR_COMMON_RPC_PROGRESS_STREAM_H_
#define KVASIR_COMMON_RPC_PROGRESS_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/rpc/call.h"

namespace kvasir {

template <class Response>
class ProgressStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  // The stream lives as long as the call or any pointer to it.
  static std::shared_ptr<ProgressStream> Make() {
    std::shared_ptr<ProgressStream> stream(new ProgressStream());
    stream->self_ = stream;
    return stream;
  }

  // Both may be called from any thread, also after the client has gone: then they do nothing.
  void Push(const Response& response) {
    {
      const std::lock_guard lock(mutex_);
      if (ending_) {
        return;
      }
      queue_.push_back(SerializeMessage(response));
    }
    Advance();
  }
  void End(const absl::Status& status) { EndWith(ToGrpcStatus(status), /*drop=*/false); }
  // Whether it was ended, or the client is gone: nothing more will be sent.
  [[nodiscard]] bool ended() {
    const std::lock_guard lock(mutex_);
    return ending_;
  }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      busy_ = false;
    }
    if (ok) {
      Advance();
    } else {
      OnCancel();
    }
  }

  void OnCancel() override {
    EndWith(ToGrpcStatus(MakeError({.code = absl::StatusCode::kCancelled,
                                    .reason = reason::kCallCancelled,
                                    .message = "the stream is gone; what it reported on goes on"})),
            /*drop=*/true);
  }

  void OnDone() override { self_.reset(); }

 private:
  ProgressStream() = default;

  void EndWith(const grpc::Status& status, bool drop) {
    {
      const std::lock_guard lock(mutex_);
      if (!ending_) {
        ending_ = true;
        status_ = status;
      }
      if (drop) {
        queue_.clear();
      }
    }
    Advance();
  }

  // Starts the next write, or the end, unless one is on its way. gRPC is called without the lock.
  void Advance() {
    bool finish = false;
    {
      const std::lock_guard lock(mutex_);
      if (busy_ || finished_ || (queue_.empty() && !ending_)) {
        return;
      }
      if (queue_.empty()) {
        finish = finished_ = true;
      } else {
        busy_ = true;
        current_ = queue_.front();
        queue_.pop_front();
      }
    }
    if (finish) {
      this->Finish(status_);
    } else {
      this->StartWrite(&current_);
    }
  }

  std::mutex mutex_;
  std::deque<grpc::ByteBuffer> queue_;
  grpc::ByteBuffer current_;
  grpc::Status status_;
  bool busy_ = false;
  bool ending_ = false;
  bool finished_ = false;
  std::shared_ptr<ProgressStream> self_;  // shared with the producer: either may outlive the other
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_RPC_PROGRESS_STREAM_H_
