// A gRPC server with the habits that planner and worker share: health, limits, loopback unless told
// otherwise, and an orderly end.
#ifndef KVASIR_COMMON_RPC_SERVER_H_
#define KVASIR_COMMON_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/address.h"

namespace kvasir {

struct RpcServerOptions {
  std::string listen = "127.0.0.1:0";  // port 0: the system chooses
  bool insecure = false;               // needed for any address that is not loopback: there is no TLS yet
  bool reflection = false;
  int concurrent_streams_max = 256;  // per connection
  // Drain: NOT_SERVING, wait `grace` so that balancers notice, refuse new calls, let the running ones finish
  // for `deadline`, then cancel them.
  std::chrono::milliseconds drain_grace{0};
  std::chrono::milliseconds drain_deadline{10'000};
};

class RpcServer {
 public:
  // `services` outlive the server. Health knows "" (the process) and every service of `ready_names` ("kvasir.
  // planner.v1.PlannerService"), all SERVING from the start. InvalidArgument for a bad address or one that is
  // not loopback without `insecure`; Unavailable when the port is taken.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const RpcServerOptions& options,
                                                          const std::vector<grpc::Service*>& services,
                                                          const std::vector<std::string>& ready_names);
  // Drains with the options' times if Drain was not called.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // With the port the system chose.
  [[nodiscard]] const Address& address() const { return address_; }

  // Readiness of one service; liveness ("") does not change.
  void SetReady(const std::string& name, bool ready);

  // `before_shutdown` runs after the grace, while calls still go on. Idempotent. Blocks until all calls
  // ended.
  void Drain(const std::function<void()>& before_shutdown = nullptr);

 private:
  RpcServer(const RpcServerOptions& options, std::vector<std::string> ready_names);

  const RpcServerOptions options_;
  const std::vector<std::string> ready_names_;
  Address address_;
  std::unique_ptr<grpc::Server> server_;
  bool drained_ = false;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_RPC_SERVER_H_
