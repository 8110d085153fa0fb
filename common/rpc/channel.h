// The client's side: channels with our limits, deadlines on every call, health.
#ifndef KVASIR_COMMON_RPC_CHANNEL_H_
#define KVASIR_COMMON_RPC_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/address.h"

namespace kvasir {

// Connects when first used. Reconnects soon after a peer came back: at most 1 s between attempts.
[[nodiscard]] std::shared_ptr<grpc::Channel> MakeChannel(const Address& address);

// Sets the deadline of a call to `timeout` from now.
void SetTimeout(grpc::ClientContext& context, std::chrono::milliseconds timeout);

// The outcome of a client's call: as FromGrpcStatus, and where the transport failed, PEER_UNREACHABLE or
// DEADLINE_EXPIRED with metadata `peer`, so that a caller sees who did not answer.
[[nodiscard]] absl::Status FromPeer(const grpc::Status& status, const std::string& peer);

// OK when the service ("" for the process) is SERVING.
[[nodiscard]] absl::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                                       const std::string& service, std::chrono::milliseconds timeout);

}  // namespace kvasir

#endif  // KVASIR_COMMON_RPC_CHANNEL_H_
