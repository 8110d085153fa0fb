#include "common/rpc/channel.h"

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/rpc/call.h"
#include "common/rpc/status_codec.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace kvasir {
namespace {

// A connection that could not be made is tried again before a call fails: gRPC 1.51 now and then reports a
// connect that was merely in progress as failed (it reads errno after other system calls), once in about a
// thousand. Every call of ours may be repeated: control calls are idempotent, a step carries its number, and
// a Decode stream is only repeated while it has answered nothing.
constexpr char kServiceConfig[] = R"({"methodConfig": [{
  "name": [{}],
  "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
                  "retryableStatusCodes": ["UNAVAILABLE"]}}]})";

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const Address& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(2 * kMessageBytesMax));
  arguments.SetMaxSendMessageSize(static_cast<int>(2 * kMessageBytesMax));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Also how long one attempt to connect may take: a busy machine needs more than the time between attempts.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, static_cast<int>(2 * kMessageBytesMax));
  // A proxy of the environment must never see traffic between planner and workers.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(AddressText(address), grpc::InsecureChannelCredentials(), arguments);
}

void SetTimeout(grpc::ClientContext& context, std::chrono::milliseconds timeout) {
  context.set_deadline(std::chrono::system_clock::now() + timeout);
}

absl::Status FromPeer(const grpc::Status& status, const std::string& peer) {
  absl::Status decoded = FromGrpcStatus(status);
  if (decoded.ok()) {
    return decoded;
  }
  TypedError error = ErrorOf(decoded);
  error.metadata["peer"] = peer;
  if (error.reason != absl::StatusCodeToString(error.code)) {
    return MakeError(error);
  }
  if (error.code == absl::StatusCode::kUnavailable) {
    error.reason = reason::kPeerUnreachable;
    error.message = absl::StrFormat("%s does not answer: %s", peer, error.message);
  } else if (error.code == absl::StatusCode::kDeadlineExceeded) {
    error.reason = reason::kDeadlineExpired;
    error.message = absl::StrFormat("%s did not answer within the deadline", peer);
  }
  return MakeError(error);
}

absl::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel, const std::string& service,
                         std::chrono::milliseconds timeout) {
  const auto stub = grpc::health::v1::Health::NewStub(channel);
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  absl::Status status = FromGrpcStatus(stub->Check(&context, request, &response));
  if (!status.ok()) {
    return status;
  }
  if (response.status() != grpc::health::v1::HealthCheckResponse::SERVING) {
    return absl::UnavailableError(absl::StrFormat("service \"%s\" is not serving", service));
  }
  return absl::OkStatus();
}

}  // namespace kvasir
