// Laws that hold for every request, on random ones: plans verify, text round trips, more memory and shorter
// contexts never turn a fit into a misfit, and a fixed arena never admits more of what is longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include "common/plan/plan_text.h"
#include "common/plan/verify.h"
#include "planner/core/capacity.h"
#include "planner/rulesets/make_plan.h"
#include "tests/property/random_request.h"
#include "tests/testing/k3_request.h"
#include "tests/testing/matchers.h"
#include "tests/testing/window_request.h"

namespace kvasir {
namespace {

using testing::IsOk;
using testing::RandomRequest;

constexpr std::uint32_t kRequests = 400;

bool Fits(const PlanRequest& request) { return std::holds_alternative<Planned>(MakePlan(request)); }

void SetMemory(PlanRequest& request, std::int64_t bytes) {
  for (RankMemory& rank : request.ranks) rank.kv_memory = Bytes(bytes);
}

std::int64_t Memory(const PlanRequest& request) {
  std::int64_t least = request.ranks.front().kv_memory.value();
  for (const RankMemory& rank : request.ranks) least = std::min(least, rank.kv_memory.value());
  return least;
}

TEST(PlanLaws, EveryPlanVerifiesAndRoundTrips) {
  int planned_count = 0;
  int misfit_count = 0;
  std::map<StateRollback, int> rollbacks;
  for (std::uint32_t seed = 0; seed < kRequests; ++seed) {
    SCOPED_TRACE(seed);
    const PlanOutcome outcome = MakePlan(RandomRequest(seed));
    if (const auto* refusals = std::get_if<Refusals>(&outcome)) {
      FAIL() << RefusalText(refusals->refusals.front());
    }
    if (std::holds_alternative<DoesNotFit>(outcome)) {
      ++misfit_count;
      continue;
    }
    const auto& planned = std::get<Planned>(outcome);
    ++planned_count;
    ++rollbacks[planned.plan.rollback];
    ASSERT_THAT(VerifyPlan(planned.plan), IsOk());
    const absl::StatusOr<Plan> back = PlanFromText(planned.text);
    ASSERT_THAT(back, IsOk());
    ASSERT_EQ(PlanToText(*back), planned.text);
    ASSERT_GE(CapacityAt(planned.plan, planned.plan.context_tokens).requests, 1);
  }
  // The generator must reach all of it, or the laws are tested on little.
  EXPECT_GT(planned_count, static_cast<int>(kRequests) / 4);
  EXPECT_GT(misfit_count, static_cast<int>(kRequests) / 20);
  EXPECT_GT(rollbacks[StateRollback::kSnapshots], 5);
  EXPECT_GT(rollbacks[StateRollback::kReplay], 5);
  EXPECT_GT(rollbacks[StateRollback::kNone], 5);
}

TEST(PlanLaws, MoreMemoryNeverLosesAFit) {
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    PlanRequest request = RandomRequest(seed);
    const std::int64_t memory = Memory(request);
    bool fitted = false;
    // Fine steps around the least arena that fits, coarse ones beyond.
    for (const std::int64_t bytes :
         {memory / 64, memory / 16, memory / 8, memory / 4, memory / 2, memory - 256, memory, memory + 1,
          memory + 255, memory + 4096, memory * 2, memory * 3, memory * 16}) {
      SetMemory(request, bytes);
      const bool fits = Fits(request);
      ASSERT_TRUE(fits || !fitted) << "seed " << seed << ": " << bytes << " bytes do not fit, fewer did";
      fitted = fits;
    }
  }
}

TEST(PlanLaws, AShorterContextNeverLosesAFit) {
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    PlanRequest request = RandomRequest(seed);
    bool misfit = false;
    for (const std::int64_t context : {1, 7, 64, 500, 1024, 5000, 8192, 33000, 150000, 1000000}) {
      request.context_tokens = context;
      const bool fits = Fits(request);
      ASSERT_TRUE(!fits || !misfit) << "seed " << seed << ": " << context << " tokens fit, fewer did not";
      misfit = !fits;
    }
  }
}

TEST(PlanLaws, ALongerContextIsNeverCheaper) {
  for (std::uint32_t seed = 0; seed < kRequests; ++seed) {
    const PlanOutcome outcome = MakePlan(RandomRequest(seed));
    const auto* planned = std::get_if<Planned>(&outcome);
    if (planned == nullptr) continue;
    CapacityRow before = CapacityAt(planned->plan, 1);
    for (std::int64_t context = 2; context < 300000; context += 1 + context / 3) {
      const CapacityRow row = CapacityAt(planned->plan, context);
      ASSERT_GE(row.bytes_per_request, before.bytes_per_request) << "seed " << seed << " at " << context;
      ASSERT_LE(row.requests, before.requests) << "seed " << seed << " at " << context;
      ASSERT_LE(row.guaranteed_requests, row.requests);
      before = row;
    }
  }
}

// With the sizes of one plan, every byte more is at least as good.
TEST(PlanLaws, MoreParentsNeverAdmitFewer) {
  const Plan plan = std::get<Planned>(MakePlan(testing::K3Request())).plan;
  const std::vector<PoolLoad> loads = LoadsOf(plan);
  for (const std::int64_t context : {8192, 32768, 131072}) {
    std::int64_t before = 0;
    for (std::int64_t parents = 0; parents < 2000; parents += 7) {
      const std::int64_t requests = RequestsIn(loads, parents, context, plan.prefill_chunk);
      ASSERT_GE(requests, before);
      before = requests;
    }
  }
}

// Sizes are chosen anew for each arena, by the worst of three lengths. Across a gigabyte more that never
// costs.
TEST(PlanLaws, AGigabyteMoreNeverAdmitsFewer) {
  for (const std::int64_t tokens : {std::int64_t{0}, std::int64_t{7}}) {
    std::vector<std::int64_t> before(3, 0);
    for (std::int64_t gib = 2; gib <= 120; ++gib) {
      const PlanOutcome outcome =
          MakePlan(testing::K3Request({.draft_tokens = tokens, .kv_memory_bytes = gib << 30}));
      const auto* planned = std::get_if<Planned>(&outcome);
      if (planned == nullptr) continue;
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_GE(planned->report.capacity[i].requests, before[i]) << gib << " GiB";
        before[i] = planned->report.capacity[i].requests;
      }
    }
    EXPECT_GT(before[0], 1000);
  }
}

TEST(PlanLaws, AMisfitsFiguresHold) {
  int checked = 0;
  for (std::uint32_t seed = 0; seed < kRequests && checked < 25; ++seed) {
    PlanRequest request = RandomRequest(seed);
    const PlanOutcome outcome = MakePlan(request);
    const auto* misfit = std::get_if<DoesNotFit>(&outcome);
    if (misfit == nullptr) continue;
    ++checked;
    SetMemory(request, misfit->needed.value());
    ASSERT_TRUE(Fits(request)) << "seed " << seed;
    SetMemory(request, misfit->needed.value() - 1);
    ASSERT_FALSE(Fits(request)) << "seed " << seed;
    SetMemory(request, misfit->given.value());
    if (misfit->longest_context_tokens > 0) {
      request.context_tokens = misfit->longest_context_tokens;
      ASSERT_TRUE(Fits(request)) << "seed " << seed;
    }
    request.context_tokens = misfit->longest_context_tokens + 1;
    ASSERT_FALSE(Fits(request)) << "seed " << seed;
  }
  EXPECT_EQ(checked, 25);
}

}  // namespace
}  // namespace kvasir
