#include "common/rpc/server.h"

#include <dlfcn.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/health_check_service_interface.h>

#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/rpc/call.h"

namespace kvasir {
namespace {

// Bytes that gRPC itself lets through, so that a message a little too large gets our own answer
// (MESSAGE_TOO_LARGE with the limit) instead of gRPC's.
constexpr int kTransportBytesMax = static_cast<int>(2 * kMessageBytesMax);

// The library registers itself with every server as soon as it is loaded, so it is loaded only when asked
// for.
absl::Status LoadReflection() {
  if (dlopen("libgrpc++_reflection.so.1.51", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrFormat("--reflection needs libgrpc++_reflection.so.1.51: %s", dlerror()));
  }
  return absl::OkStatus();
}

absl::Status CheckListen(const RpcServerOptions& options, const Address& address) {
  if (IsLoopback(address) || options.insecure) {
    return absl::OkStatus();
  }
  return FieldError(
      reason::kBadAddress, "listen",
      absl::StrFormat("%s is not a loopback address and connections are not encrypted; listen on "
                      "127.0.0.1, or give --insecure inside a network you trust",
                      AddressText(address)));
}

}  // namespace

RpcServer::RpcServer(const RpcServerOptions& options, std::vector<std::string> ready_names)
    : options_(options), ready_names_(std::move(ready_names)) {}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcServerOptions& options,
                                                            const std::vector<grpc::Service*>& services,
                                                            const std::vector<std::string>& ready_names) {
  KVASIR_ASSIGN_OR_RETURN(Address address, ParseAddress(options.listen, /*port_zero=*/true));
  KVASIR_RETURN_IF_ERROR(CheckListen(options, address));
  if (options.reflection) {
    KVASIR_RETURN_IF_ERROR(LoadReflection());
  }
  grpc::EnableDefaultHealthCheckService(true);
  // Protocol Buffers would write a line for each message that does not parse; the caller is told, and
  // nobody's log is filled from outside.
  google::protobuf::SetLogHandler(nullptr);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(AddressText(address), grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(kTransportBytesMax);
  builder.SetMaxSendMessageSize(kTransportBytesMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.concurrent_streams_max);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two servers on one port would share its calls
  for (grpc::Service* service : services) {
    builder.RegisterService(service);
  }
  std::unique_ptr<RpcServer> server(new RpcServer(options, ready_names));
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || port == 0) {
    return MakeError(
        {.code = absl::StatusCode::kUnavailable,
         .reason = reason::kBadAddress,
         .message = absl::StrFormat("cannot listen on %s; is the port taken?", AddressText(address)),
         .field = "listen"});
  }
  address.port = port;
  server->address_ = address;
  for (const std::string& name : ready_names) {
    server->SetReady(name, true);
  }
  return server;
}

RpcServer::~RpcServer() { Drain(); }

void RpcServer::SetReady(const std::string& name, bool ready) {
  server_->GetHealthCheckService()->SetServingStatus(name, ready);
}

void RpcServer::Drain(const std::function<void()>& before_shutdown) {
  if (drained_ || server_ == nullptr) {
    return;
  }
  drained_ = true;
  server_->GetHealthCheckService()->SetServingStatus(false);
  std::this_thread::sleep_for(options_.drain_grace);
  if (before_shutdown) {
    before_shutdown();
  }
  server_->Shutdown(std::chrono::system_clock::now() + options_.drain_deadline);
  server_->Wait();
}

}  // namespace kvasir
