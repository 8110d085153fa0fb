// A planner process on loopback under a steady number of outstanding calls: answers a second, their 50th and
// 99th percentile, and how much its memory grew. The baseline is a health check through the same server: what
// gRPC costs without any planning. Read the plans' rate as a fraction of it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/channel.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "planner/service/answers.h"
#include "tests/testing/process.h"

namespace kvasir {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kOutstanding = 16;

// The server, started once for all benchmarks of this program.
struct Planner {
  std::unique_ptr<testing::Process> process;
  std::shared_ptr<grpc::Channel> channel;
};

Planner& ThePlanner() {
  static Planner planner = [] {
    char directory[] = "/tmp/kvasir_bench_XXXXXX";
    if (mkdtemp(directory) == nullptr) return Planner();
    auto process = testing::Process::Start({testing::BinaryPath("kvasir-planner"), "--listen=127.0.0.1:0",
                                            std::string("--state-dir=") + directory, "--threads=2"});
    if (!process.ok()) return Planner();
    const auto address = (*process)->WaitForText("listening on ");
    const auto parsed = ParseAddress(address.value_or(""));
    if (!parsed.ok()) return Planner();
    return Planner{*std::move(process), MakeChannel(*parsed)};
  }();
  return planner;
}

std::int64_t ResidentBytes(const Planner& planner) {
  std::ifstream statm("/proc/" + std::to_string(planner.process->pid()) + "/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

// At most kOutstanding calls fly; each that lands records how long it took.
class Pace {
 public:
  void Depart() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return flying_ < kOutstanding; });
    ++flying_;
  }
  void Land(SteadyClock::time_point departed, bool ok) {
    const auto took = SteadyClock::now() - departed;
    const std::lock_guard lock(mutex_);
    microseconds_.push_back(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    failed_ += ok ? 0 : 1;
    --flying_;
    changed_.notify_all();
  }
  void Report(benchmark::State& state) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return flying_ == 0; });
    std::sort(microseconds_.begin(), microseconds_.end());
    const auto at = [this](std::size_t percent) {
      return static_cast<double>(microseconds_[(microseconds_.size() - 1) * percent / 100]) / 1000.0;
    };
    state.SetItemsProcessed(state.iterations());
    state.counters["p50_ms"] = at(50);
    state.counters["p99_ms"] = at(99);
    state.counters["failed"] = static_cast<double>(failed_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int flying_ = 0;
  std::int64_t failed_ = 0;
  std::vector<std::int64_t> microseconds_;
};

template <class Request, class Response>
struct Flight {
  grpc::ClientContext context;
  Request request;
  Response response;
  SteadyClock::time_point departed;
};

// `call(flight, done)` starts one call; `good` judges its response.
template <class Request, class Response>
void Fly(benchmark::State& state, const Request& request,
         const std::function<void(Flight<Request, Response>&, std::function<void(grpc::Status)>)>& call,
         bool (*good)(const Response&)) {
  Planner& planner = ThePlanner();
  if (planner.channel == nullptr) {
    state.SkipWithError("no planner");
    return;
  }
  Pace pace;
  const std::int64_t before = ResidentBytes(planner);
  for (auto _ : state) {
    pace.Depart();
    auto flight = std::make_shared<Flight<Request, Response>>();
    flight->request = request;
    flight->departed = SteadyClock::now();
    call(*flight, [flight, &pace, good](const grpc::Status& status) {
      pace.Land(flight->departed, status.ok() && good(flight->response));
    });
  }
  pace.Report(state);
  state.counters["grew_MiB"] = static_cast<double>(ResidentBytes(planner) - before) / (1 << 20);
}

void BM_HealthCheck(benchmark::State& state) {
  using Request = grpc::health::v1::HealthCheckRequest;
  using Response = grpc::health::v1::HealthCheckResponse;
  const auto stub = grpc::health::v1::Health::NewStub(ThePlanner().channel);
  Fly<Request, Response>(
      state, Request(),
      [&](auto& flight, std::function<void(grpc::Status)> done) {
        stub->async()->Check(&flight.context, &flight.request, &flight.response, std::move(done));
      },
      [](const Response& response) { return response.status() == Response::SERVING; });
}
BENCHMARK(BM_HealthCheck)->UseRealTime();

planner::v1::CreatePlanRequest KimiK3(const std::string& ruleset) {
  planner::v1::CreatePlanRequest request;
  request.mutable_target()->set_catalogue_name("kimi-k3");
  request.mutable_draft()->set_catalogue_name("kimi-k3-dspark");
  plan::v1::PlanOptions& options = *request.mutable_options();
  options.mutable_topology()->set_tp(8);
  options.mutable_topology()->set_dcp(8);
  options.add_kv_memory_bytes(std::int64_t{46} << 30);
  options.add_context_tokens(131'072);
  options.set_ruleset(ruleset);
  return request;
}

// The same answer without a server: what is left of a call is gRPC's.
void BM_AnswerInProcess(benchmark::State& state, const std::string& ruleset) {
  const std::string bytes = KimiK3(ruleset).SerializeAsString();
  for (auto _ : state) {
    planner::v1::CreatePlanRequest request;
    if (!request.ParseFromString(bytes)) state.SkipWithError("not a request");
    benchmark::DoNotOptimize(AnswerCreatePlan(request)->SerializeAsString());
  }
}
BENCHMARK_CAPTURE(BM_AnswerInProcess, vllm_2026_11, "vllm-2026-11");
BENCHMARK_CAPTURE(BM_AnswerInProcess, native, "native");

void BM_CreatePlan(benchmark::State& state, const std::string& ruleset) {
  using Request = planner::v1::CreatePlanRequest;
  using Response = planner::v1::CreatePlanResponse;
  const auto stub = planner::v1::PlannerService::NewStub(ThePlanner().channel);
  Fly<Request, Response>(
      state, KimiK3(ruleset),
      [&](auto& flight, std::function<void(grpc::Status)> done) {
        stub->async()->CreatePlan(&flight.context, &flight.request, &flight.response, std::move(done));
      },
      [](const Response& response) {
        return response.has_plan() || (response.has_engine() && !response.engine().has_failure());
      });
}
BENCHMARK_CAPTURE(BM_CreatePlan, vllm_2026_11, "vllm-2026-11")->UseRealTime();
BENCHMARK_CAPTURE(BM_CreatePlan, native, "native")->UseRealTime();

}  // namespace
}  // namespace kvasir
