// The program `kvasir-planner`: flags, store, dispatcher, server, and an orderly end.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "common/obs/clock.h"
#include "common/obs/event_log.h"
#include "common/rpc/server.h"
#include "common/rpc/stop_signal.h"
#include "planner/dispatch/dispatcher.h"
#include "planner/dispatch/file_store.h"
#include "planner/dispatch/grpc_worker_caller.h"
#include "planner/service/planner_flags.h"
#include "planner/service/planner_service.h"

namespace kvasir {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitBadUsage = 2;
constexpr int kExitCannotServe = 4;

absl::Status Serve(const PlannerFlags& flags, StopSignal& stop) {
  std::string state_dir = flags.state_dir;
  if (state_dir.empty()) {
    KVASIR_ASSIGN_OR_RETURN(state_dir, DefaultStateDir(std::getenv("XDG_STATE_HOME"), std::getenv("HOME")));
  }
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<FileStore> store, FileStore::Open(state_dir));
  const SystemClock clock;
  GrpcWorkerCaller caller;
  Dispatcher dispatcher(*store, caller, clock);
  KVASIR_RETURN_IF_ERROR(dispatcher.Recover());
  PlannerServiceImpl service(dispatcher, caller, static_cast<std::size_t>(flags.threads));
  const std::chrono::seconds drain(flags.drain_seconds);
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                          RpcServer::Start({.listen = flags.listen,
                                            .insecure = flags.insecure,
                                            .reflection = flags.reflection,
                                            .drain_grace = std::chrono::seconds(flags.grace_seconds),
                                            .drain_deadline = drain},
                                           {&service}, {PlannerServiceImpl::Name()}));
  std::printf("listening on %s\n", AddressText(server->address()).c_str());
  std::fflush(stdout);
  LogEvent(LogLevel::kInfo, "serving",
           {{"address", AddressText(server->address())}, {"state_dir", state_dir}});

  const int signal = stop.Wait();
  LogEvent(LogLevel::kInfo, "stopping", {{"signal", signal}});
  server->Drain([&] {
    dispatcher.WaitIdle(std::chrono::milliseconds(drain).count());
    dispatcher.Stop();
  });
  LogEvent(LogLevel::kInfo, "stopped", {});
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  StopSignal stop;
  StartLogging(argv[0]);
  const std::vector<std::string> args(argv + 1, argv + argc);
  const absl::StatusOr<PlannerFlags> flags = ParsePlannerFlags(args);
  if (!flags.ok()) {
    std::fprintf(stderr, "kvasir-planner: %s\n", std::string(flags.status().message()).c_str());
    return kExitBadUsage;
  }
  if (flags->help) {
    std::printf("%s", PlannerHelp().c_str());
    return kExitOk;
  }
  const absl::Status served = Serve(*flags, stop);
  if (!served.ok()) {
    std::fprintf(stderr, "kvasir-planner: %s\n", std::string(served.message()).c_str());
    return kExitCannotServe;
  }
  return kExitOk;
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) { return kvasir::Main(argc, argv); }
