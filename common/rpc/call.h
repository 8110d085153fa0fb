// One call on the server's side, between gRPC's bytes and a handler of plain values:
//   bytes -> size limit -> parse -> handler (on a pool thread, with a deadline) -> bytes or error details.
// Methods are registered raw (WithRawCallbackMethod_X of the generated code), because gRPC's own answer to
// bytes that do not parse is UNIMPLEMENTED without a word.
#ifndef KVASIR_COMMON_RPC_CALL_H_
#define KVASIR_COMMON_RPC_CALL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/call_pool.h"
#include "common/rpc/status_codec.h"

namespace kvasir {

inline constexpr std::size_t kMessageBytesMax = std::size_t{16} << 20;
inline constexpr std::chrono::seconds kUnaryDeadlineDefault{30};

// What a handler may know of its call.
class CallContext {
 public:
  // A caller without a deadline gets `default_deadline` from now.
  CallContext(grpc::CallbackServerContext* context, std::chrono::milliseconds default_deadline);
  [[nodiscard]] std::chrono::system_clock::time_point deadline() const { return deadline_; }
  // Until the deadline; 0 when it has passed. Pass it on to the calls made on behalf of this one.
  [[nodiscard]] std::chrono::milliseconds remaining() const;
  [[nodiscard]] bool IsCancelled() const { return context_->IsCancelled(); }
  // DEADLINE_EXPIRED or CALL_CANCELLED where it makes no sense to go on.
  [[nodiscard]] absl::Status CheckAlive() const;

 private:
  grpc::CallbackServerContext* context_;
  std::chrono::system_clock::time_point deadline_;
};

// MESSAGE_TOO_LARGE above kMessageBytesMax.
[[nodiscard]] absl::Status CheckMessageBytes(const grpc::ByteBuffer& bytes);
[[nodiscard]] absl::Status MalformedMessage(const std::string& message_name);
[[nodiscard]] absl::Status ServerBusy();

template <class Message>
absl::StatusOr<Message> ParseMessage(grpc::ByteBuffer bytes) {
  if (absl::Status size = CheckMessageBytes(bytes); !size.ok()) {
    return size;
  }
  Message message;
  if (!grpc::SerializationTraits<Message>::Deserialize(&bytes, &message).ok()) {
    return MalformedMessage(Message::descriptor()->full_name());
  }
  return message;
}

template <class Message>
grpc::ByteBuffer SerializeMessage(const Message& message) {
  grpc::ByteBuffer bytes;
  bool own = false;
  (void)grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own);  // fails above 2 GiB only
  return bytes;
}

template <class Request, class Response>
using UnaryHandler = std::function<absl::StatusOr<Response>(const Request&, const CallContext&)>;

// Serves one unary call. The buffers live until the reactor has finished.
template <class Request, class Response>
grpc::ServerUnaryReactor* ServeUnary(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request_bytes, grpc::ByteBuffer* response_bytes,
                                     CallPool& pool, UnaryHandler<Request, Response> handler,
                                     std::chrono::milliseconds default_deadline = kUnaryDeadlineDefault) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const CallContext call(context, default_deadline);
  const bool accepted = pool.Run([=, handler = std::move(handler)] {
    absl::Status status = call.CheckAlive();
    if (status.ok()) {
      absl::StatusOr<Request> request = ParseMessage<Request>(*request_bytes);
      absl::StatusOr<Response> response =
          request.ok() ? handler(*request, call) : absl::StatusOr<Response>(request.status());
      status = response.status();
      if (response.ok()) {
        *response_bytes = SerializeMessage(*response);
      }
    }
    reactor->Finish(ToGrpcStatus(status));
  });
  if (!accepted) {
    reactor->Finish(ToGrpcStatus(ServerBusy()));
  }
  return reactor;
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_RPC_CALL_H_
