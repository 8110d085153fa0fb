// What vLLM 2026-11 would do with Kimi-K3 and its DSpark draft, 98 layers: planned, written down and hashed.
#include <benchmark/benchmark.h>

#include <string>

#include "planner/rulesets/vllm/engine_plan_text.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/engine_cases.h"

namespace kvasir {
namespace {

void BM_PlanKimiK3Dspark(benchmark::State& state) {
  const vllm::EngineCase engine_case = testing::KimiK3Dspark();
  std::size_t bytes = 0;
  for (auto _ : state) {
    const vllm::EnginePlan plan = PlanEngine(engine_case, vllm::EngineVersion::k2026_11);
    const std::string text = ToText(engine_case, plan);
    bytes = text.size();
    benchmark::DoNotOptimize(vllm::EnginePlanId(text));
  }
  state.counters["text_bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_PlanKimiK3Dspark);

void BM_PlanOnly(benchmark::State& state) {
  const vllm::EngineCase engine_case = testing::KimiK3Dspark();
  for (auto _ : state) {
    benchmark::DoNotOptimize(PlanEngine(engine_case, vllm::EngineVersion::k2026_11));
  }
}
BENCHMARK(BM_PlanOnly);

// The same with eight ranks, as a launch on eight devices lists them.
void BM_PlanEightWorkers(benchmark::State& state) {
  vllm::EngineCase engine_case = testing::KimiK3Dspark();
  engine_case.workers.resize(8, engine_case.workers[0]);
  for (auto _ : state) {
    const vllm::EnginePlan plan = PlanEngine(engine_case, vllm::EngineVersion::k2026_11);
    benchmark::DoNotOptimize(vllm::EnginePlanId(ToText(engine_case, plan)));
  }
}
BENCHMARK(BM_PlanEightWorkers);

}  // namespace
}  // namespace kvasir
