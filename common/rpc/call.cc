#include "common/rpc/call.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {

CallContext::CallContext(grpc::CallbackServerContext* context, std::chrono::milliseconds default_deadline)
    : context_(context), deadline_(context->deadline()) {
  if (deadline_ == std::chrono::system_clock::time_point::max()) {
    deadline_ = std::chrono::system_clock::now() + default_deadline;
  }
}

std::chrono::milliseconds CallContext::remaining() const {
  const auto left = deadline_ - std::chrono::system_clock::now();
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left), std::chrono::milliseconds(0));
}

absl::Status CallContext::CheckAlive() const {
  if (IsCancelled()) {
    return MakeError({.code = absl::StatusCode::kCancelled,
                      .reason = reason::kCallCancelled,
                      .message = "the caller has cancelled the call"});
  }
  if (remaining().count() == 0) {
    return MakeError({.code = absl::StatusCode::kDeadlineExceeded,
                      .reason = reason::kDeadlineExpired,
                      .message = "the deadline passed before the call began; call again with a longer one"});
  }
  return absl::OkStatus();
}

absl::Status CheckMessageBytes(const grpc::ByteBuffer& bytes) {
  if (bytes.Length() <= kMessageBytesMax) {
    return absl::OkStatus();
  }
  return MakeError({.code = absl::StatusCode::kResourceExhausted,
                    .reason = reason::kMessageTooLarge,
                    .message = absl::StrFormat("the message has %d bytes; the limit is %d", bytes.Length(),
                                               kMessageBytesMax),
                    .metadata = {{"bytes", std::to_string(bytes.Length())},
                                 {"limit_bytes", std::to_string(kMessageBytesMax)}}});
}

absl::Status MalformedMessage(const std::string& message_name) {
  return MakeError({.code = absl::StatusCode::kInvalidArgument,
                    .reason = reason::kMalformedMessage,
                    .message = absl::StrFormat("the bytes are not a %s; send the message that proto/ defines",
                                               message_name),
                    .metadata = {{"message", message_name}}});
}

absl::Status ServerBusy() {
  return MakeError({.code = absl::StatusCode::kResourceExhausted,
                    .reason = reason::kServerBusy,
                    .message = "too many calls wait; try again in a second",
                    .retry_after_ms = 1000});
}

}  // namespace kvasir
