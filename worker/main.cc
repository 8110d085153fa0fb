// kvasir-worker: wires the node, the service and the server together. The flags are in
// service/worker_flags.h.
#include <gnu/libc-version.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/obs/clock.h"
#include "common/obs/event_log.h"
#include "common/rpc/address.h"
#include "common/rpc/server.h"
#include "common/rpc/stop_signal.h"
#include "worker/choose_backend.h"
#include "worker/comm/comm_listener.h"
#include "worker/comm/hello.h"
#include "worker/engine/step_plan.h"
#include "worker/service/peer_client.h"
#include "worker/service/worker_flags.h"
#include "worker/service/worker_node.h"
#include "worker/service/worker_service.h"

namespace kvasir {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitUsage = 2;
constexpr int kExitService = 4;

// What must agree between ranks: arithmetic differs between compilers and libraries, messages between
// versions.
RankFacts ProcessFacts(const std::string& backend) {
#ifdef __clang__
  const std::string compiler = std::string("clang ") + __clang_version__;
#else
  const std::string compiler = std::string("g++ ") + __VERSION__;
#endif
  // The C library computes exp with fused operations where it can, and then rounds differently.
  const bool fused = __builtin_cpu_supports("fma") != 0;
  return {{"backend", backend},
          {"build.compiler", compiler},
          {"build.version", KVASIR_VERSION},
          {"cpu.fused", fused ? "yes" : "no"},
          {"comm.version", std::to_string(kCommVersion)},
          {"step.version", std::to_string(kStepVersion)},
          {"library.libc", gnu_get_libc_version()}};
}

Bytes MemoryPerRank(const WorkerFlags& flags, const ChosenBackend& backend) {
  if (flags.memory.value() > 0) return flags.memory;
  const std::int64_t machine = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const std::int64_t device = backend.device_memory.value();
  return Bytes((device > 0 ? device : machine) / 4 * 3 / flags.ranks);
}

absl::StatusOr<std::unique_ptr<CommListener>> StartComm(const WorkerFlags& flags) {
  KVASIR_ASSIGN_OR_RETURN(const Address server, ParseAddress(flags.listen, /*port_zero=*/true));
  Address address{server.host, 0};
  if (!flags.comm_listen.empty()) {
    KVASIR_ASSIGN_OR_RETURN(address, ParseAddress(flags.comm_listen, /*port_zero=*/true));
  }
  if (!IsLoopback(address) && !flags.insecure) {
    return absl::InvalidArgumentError(
        "--comm-listen " + AddressText(address) +
        " is not a loopback address and collectives are not encrypted; give --insecure "
        "inside a network you trust");
  }
  CommListenerOptions options;
  options.listen = {address.host, address.port};
  return CommListener::Start(options);
}

// The address that other workers are told.
absl::StatusOr<CommEndpoint> AdvertisedComm(const WorkerFlags& flags, const CommListener& listener) {
  if (!flags.advertise.empty()) return CommEndpoint{flags.advertise, listener.port()};
  const std::string& own = flags.comm_listen.empty() ? flags.listen : flags.comm_listen;
  KVASIR_ASSIGN_OR_RETURN(const Address address, ParseAddress(own, /*port_zero=*/true));
  if (address.host == "0.0.0.0" || address.host == "::") {
    return absl::InvalidArgumentError(
        "listening on every address; say with --advertise HOST which one other workers "
        "reach this one by");
  }
  return CommEndpoint{address.host, listener.port()};
}

WorkerNodeOptions NodeOptions(const WorkerFlags& flags, const ChosenBackend& backend, CommListener& listener,
                              const Clock& clock) {
  WorkerNodeOptions options;
  options.clock = &clock;
  options.make_peer = MakePeerClient;
  options.resources.listener = &listener;
  options.resources.faults = flags.faults;
  options.resources.checkpoint_root = flags.checkpoint_root;
  options.adaptive_verification = flags.adaptive_verification;
  options.resources.facts = ProcessFacts(backend.name);
  options.resources.facts.insert(options.resources.facts.end(), flags.facts.begin(), flags.facts.end());
  options.resources.make_backend = backend.make;
  for (std::int64_t i = 0; i < flags.ranks; ++i) {
    options.resources.places.push_back(std::make_shared<MemoryBudget>(MemoryPerRank(flags, backend)));
  }
  return options;
}

absl::Status Serve(const WorkerFlags& flags, StopSignal& stop) {
  const SystemClock clock;
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<CommListener> listener, StartComm(flags));
  KVASIR_ASSIGN_OR_RETURN(const CommEndpoint comm, AdvertisedComm(flags, *listener));
  KVASIR_ASSIGN_OR_RETURN(const ChosenBackend backend, ChooseBackend(flags.backend));
  WorkerNode node(NodeOptions(flags, backend, *listener, clock));
  WorkerServiceOptions service_options;
  service_options.backend = backend.name;
  service_options.device = backend.device;
  service_options.comm = comm;
  WorkerService service(node, service_options);
  RpcServerOptions server_options;
  server_options.listen = flags.listen;
  server_options.insecure = flags.insecure;
  server_options.reflection = flags.reflection;
  server_options.drain_deadline = flags.drain;
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                          RpcServer::Start(server_options, {service.service()}, {kWorkerServiceName}));
  LogEvent(LogLevel::kInfo, "worker_start",
           {{"address", AddressText(server->address())},
            {"comm", EndpointText(comm)},
            {"backend", backend.name},
            {"device", backend.device},
            {"remark", backend.remark},
            {"ranks", flags.ranks},
            {"bytes_per_rank", node.bytes_per_place().value()},
            {"version", KVASIR_VERSION}});
  std::printf("listening on %s\n", AddressText(server->address()).c_str());
  std::fflush(stdout);
  const int signal = stop.Wait();
  LogEvent(LogLevel::kInfo, "worker_stop", {{"signal", signal}});
  server->Drain([&service] { service.Drain(); });
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  StopSignal stop;
  const absl::StatusOr<WorkerFlags> flags = ParseWorkerFlags(std::vector<std::string>(argv + 1, argv + argc));
  if (!flags.ok()) {
    std::fprintf(stderr, "kvasir-worker: %s\n", std::string(flags.status().message()).c_str());
    return kExitUsage;
  }
  if (flags->help || flags->version) {
    std::fputs(flags->help ? WorkerUsage().c_str() : "kvasir-worker " KVASIR_VERSION "\n", stdout);
    return kExitOk;
  }
  StartLogging(argv[0]);
  const absl::Status status = Serve(*flags, stop);
  if (status.ok()) return kExitOk;
  std::fprintf(stderr, "kvasir-worker: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitService;
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) { return kvasir::Main(argc, argv); }
