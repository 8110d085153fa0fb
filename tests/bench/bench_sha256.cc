// The hash of a plan's text: a few hundred kilobytes for the largest models.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "common/base/sha256.h"

namespace kvasir {
namespace {

void BM_Sha256(benchmark::State& state) {
  const std::string text(static_cast<std::size_t>(state.range(0)), 'k');
  for (auto _ : state) {
    benchmark::DoNotOptimize(Sha256Hex(text));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK(BM_Sha256)->Arg(1 << 10)->Arg(256 << 10);

}  // namespace
}  // namespace kvasir
