// What one moved parent of Kimi-K3's plan costs (46.8 GiB per rank, TP 8, DCP 8): choosing it in a fragmented
// arena, and copying its live blocks to free blocks all over other parents, on this CPU. The copy is compared
// with one memcpy of as many bytes in the same run. Ratios travel between machines, times do not.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <variant>
#include <vector>

#include "planner/rulesets/make_plan.h"
#include "tests/testing/k3_request.h"
#include "worker/engine/block_pool.h"
#include "worker/engine/compaction.h"

namespace kvasir {
namespace {

constexpr std::int64_t kCopiedParents = 16;  // that the copy has memory for

std::optional<Plan> K3Plan() {
  const PlanOutcome outcome = MakePlan(testing::K3Request());
  const auto* const planned = std::get_if<Planned>(&outcome);
  if (planned == nullptr) return std::nullopt;
  return planned->plan;
}

std::size_t TokensPool(const Plan& plan) {
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    if (plan.pools[p].lifetime.kind == LifetimeKind::kPerToken) return p;
  }
  return 0;
}

// All parents of the pool of tokens; in each `live` of its blocks stay.
BlockPools Fragmented(const Plan& plan, std::int64_t live) {
  BlockPools pools(plan);
  const std::size_t pool = TokensPool(plan);
  const std::int64_t per_parent = plan.pools[pool].blocks_per_parent;
  std::vector<std::int64_t> counts(plan.pools.size(), 0);
  counts[pool] = (plan.parents - 1) * per_parent;
  if (!pools.Allocate(counts).ok()) return pools;
  std::vector<BlockId> freed;
  for (std::int64_t parent = 1; parent < plan.parents; ++parent) {
    // Another place in each parent, so that blocks go to places all over the arena.
    for (std::int64_t i = 0; i < per_parent - live; ++i) {
      freed.emplace_back(parent * per_parent + (parent + i) % per_parent);
    }
  }
  pools.Free(plan.pools[pool].id, freed);
  return pools;
}

// More blocks than are free, so that a parent is moved.
std::optional<ParentMove> Choose(const Plan& plan, const BlockPools& pools) {
  std::vector<std::int64_t> counts(plan.pools.size(), 0);
  counts[TokensPool(plan)] = plan.parents * plan.pools[TokensPool(plan)].blocks_per_parent;
  return ChooseMove(pools, counts);
}

void BM_ChooseMove(benchmark::State& state) {
  const std::optional<Plan> plan = K3Plan();
  if (!plan.has_value()) return state.SkipWithError("no plan");
  const BlockPools pools = Fragmented(*plan, state.range(0));
  for (auto unused : state) {
    static_cast<void>(unused);
    benchmark::DoNotOptimize(Choose(*plan, pools));
  }
  state.counters["parents"] = static_cast<double>(plan->parents);
}
BENCHMARK(BM_ChooseMove)->Arg(5)->Arg(15)->Unit(benchmark::kMicrosecond);

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Argument: live blocks of the parent that is moved. One iteration is one parent.
void BM_MoveParent(benchmark::State& state) {
  std::optional<Plan> plan = K3Plan();
  if (!plan.has_value()) return state.SkipWithError("no plan");
  plan->parents = kCopiedParents;
  const PlanPool& pool = plan->pools[TokensPool(*plan)];
  const std::optional<ParentMove> move = Choose(*plan, Fragmented(*plan, state.range(0)));
  if (!move.has_value()) return state.SkipWithError("no parent can be emptied");
  std::vector<std::byte> arena(static_cast<std::size_t>(kCopiedParents * plan->parent_bytes.value()),
                               std::byte{1});
  const auto block_bytes = static_cast<std::size_t>(pool.block_bytes);
  const std::size_t bytes = move->blocks.size() * block_bytes;
  const std::vector<std::byte> plain_from(bytes, std::byte{2});
  std::vector<std::byte> plain_to(bytes, std::byte{3});
  double moving = 0;
  double plain = 0;
  for (auto unused : state) {
    static_cast<void>(unused);
    auto begin = std::chrono::steady_clock::now();
    for (const ParentMove::Block& block : move->blocks) {
      std::memcpy(arena.data() + block.to.value() * pool.stride_bytes,
                  arena.data() + block.from.value() * pool.stride_bytes, block_bytes);
    }
    benchmark::ClobberMemory();
    const double seconds = SecondsSince(begin);
    moving += seconds;
    state.SetIterationTime(seconds);
    begin = std::chrono::steady_clock::now();
    std::memcpy(plain_to.data(), plain_from.data(), bytes);
    benchmark::DoNotOptimize(plain_to.data());
    benchmark::ClobberMemory();
    plain += SecondsSince(begin);
  }
  state.counters["blocks"] = static_cast<double>(move->blocks.size());
  state.counters["mib"] = static_cast<double>(bytes) / (1 << 20);
  state.counters["times_memcpy"] = moving / plain;
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(BM_MoveParent)->Arg(2)->Arg(8)->Arg(16)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvasir
