// WorkerService on the wire: convert, call the node, convert. No decision is made here, and nothing blocks a
// thread of gRPC's.
#ifndef KVASIR_WORKER_SERVICE_WORKER_SERVICE_H_
#define KVASIR_WORKER_SERVICE_WORKER_SERVICE_H_

#include <memory>
#include <string>

#include "common/rpc/call_pool.h"
#include "grpcpp/grpcpp.h"
#include "worker/comm/socket.h"
#include "worker/service/worker_node.h"

namespace kvasir {

inline constexpr char kWorkerServiceName[] = "kvasir.worker.v1.WorkerService";

struct WorkerServiceOptions {
  std::string backend;  // "cpu"
  std::string device;   // for people
  CommEndpoint comm;    // where other workers' ranks connect to
  // Threads for short calls, for preparations (each holds one for minutes), and for steps.
  std::size_t control_threads = 4;
  std::size_t prepare_threads = 4;
  std::size_t step_threads = 4;
  std::size_t stream_queue_max = 4096;  // events that may wait for a client
};

class WorkerService {
 public:
  // `node` outlives the service, and the service the server.
  WorkerService(WorkerNode& node, const WorkerServiceOptions& options);
  ~WorkerService();
  // To be registered with a server.
  [[nodiscard]] grpc::Service* service();
  // No new requests; streams end as soon as they have no open ones.
  void Drain();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_WORKER_SERVICE_H_
