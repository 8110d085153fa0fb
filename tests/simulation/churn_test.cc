// What churn leaves of the plans of catalogue pairs, at published seeds (churn.h says how it is measured).
// KVASIR_CHURN=N fills each arena N times instead, over more seeds, and leaves the page alone.
#include "tests/simulation/churn.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "tests/simulation/arrivals.h"
#include "tests/simulation/churn_page.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

// The published seeds. The page and the bounds are of the first three.
constexpr std::array<std::uint64_t, 8> kSeeds = {1, 2, 3, 4, 5, 6, 7, 8};
constexpr std::size_t kPageSeeds = 3;
// Where no block moves an arena goes on breaking up for some 30 fills, which take too long for every run:
// with KVASIR_CHURN=32 the least shares are 96.99 fixed and 98.95 compacted (K3, fp8, phases: one parent a
// step is not enough there). Three of the K3 plans that lose most were run for 128 fills too, at seed 1, and
// lost no more.
constexpr std::int64_t kPageFills = 8;

// Hundredths of a percent of the fungible baseline's load.
constexpr std::int64_t kFixedShareMin = 9600;
constexpr std::int64_t kCompactedShareMin = 9900;
constexpr std::int64_t kCompactedShareMinLonger = 9890;

// Three parents of two blocks can be given out, and each sequence fills one; the baseline has the null
// parent's bytes too.
TEST(ChurnTest, TheLoadIsWhatRunningSequencesHaveReserved) {
  const Plan plan = MakePoolPlan({PoolSketch{.blocks_per_parent = 2}}, /*parents=*/4, /*max_requests=*/16,
                                 /*context_tokens=*/64);
  const std::vector<Arrival> arrivals(40, Arrival{.tokens = 8, .steps = 10});
  const std::int64_t parent = plan.parent_bytes.value();
  EXPECT_EQ(RunChurn(plan, arrivals, Allocator::kFungible),
            (ChurnResult{.mean_bytes = 4 * parent, .steps = 70}));
  EXPECT_EQ(RunChurn(plan, arrivals, Allocator::kPools),
            (ChurnResult{.mean_bytes = 3 * parent, .steps = 100}));
  EXPECT_EQ(RunChurn(plan, arrivals, Allocator::kCompacted),
            (ChurnResult{.mean_bytes = 3 * parent, .steps = 100}));
}

// Two sequences of one block each keep a parent of tokens when those that filled it are gone, so the state of
// the last one has to wait until the first of them ends; with compaction it waits one step.
TEST(ChurnTest, AParentIsEmptiedForTheOneThatWaits) {
  const Plan plan = MakePoolPlan({PoolSketch{.blocks_per_parent = 8},
                                  PoolSketch{.name = "state",
                                             .lifetime = {.kind = LifetimeKind::kPerSequence, .copies = 1},
                                             .blocks_per_parent = 1}},
                                 /*parents=*/7, /*max_requests=*/16, /*context_tokens=*/64);
  const Arrival filling = {.tokens = 28, .steps = 10};  // seven blocks of four tokens
  const Arrival staying = {.tokens = 4, .steps = 100};
  const std::vector<Arrival> arrivals = {filling, staying, filling, staying, staying, staying, staying};
  const ChurnResult fixed = RunChurn(plan, arrivals, Allocator::kPools);
  EXPECT_EQ(fixed.stranded_parents, 1);
  EXPECT_EQ(fixed.steps, 100);
  const ChurnResult compacted = RunChurn(plan, arrivals, Allocator::kCompacted);
  EXPECT_EQ(compacted.moved_parents, 1);
  EXPECT_EQ(compacted.moved_bytes, plan.pools[0].block_bytes);
  EXPECT_EQ(compacted.stranded_parents, 0);
  EXPECT_EQ(compacted.steps, 11);
}

TEST(ChurnTest, LeavesOfThePlansWhatIsPromised) {
  std::int64_t fills = 0;
  const char* const asked =
      std::getenv("KVASIR_CHURN");  // NOLINT(concurrency-mt-unsafe): nothing sets variables here
  const bool longer = asked != nullptr && absl::SimpleAtoi(asked, &fills) && fills > 0;
  if (!longer) fills = kPageFills;
  const std::span<const std::uint64_t> seeds(kSeeds.data(), longer ? kSeeds.size() : kPageSeeds);
  std::vector<ChurnRow> rows;
  for (const ChurnCase& churn_case : ChurnCases()) {
    const absl::StatusOr<Plan> plan = PlanOf(churn_case);
    KVASIR_ASSERT_OK(plan);
    for (const Workload workload : {Workload::kSteady, Workload::kPhases}) {
      const ChurnRow row = rows.emplace_back(RunChurnCase(churn_case, *plan, workload, seeds, fills));
      const std::string what = ChurnPage({row});
      EXPECT_GE(row.compacted_share, longer ? kCompactedShareMinLonger : kCompactedShareMin) << what;
      EXPECT_GE(row.fixed_share, kFixedShareMin) << what;
      // Once nothing moves any more every pool stands in as few parents as its blocks fill (compaction.h).
      EXPECT_EQ(row.compacted_stranded, 0) << what;
    }
  }
  if (longer) {
    std::cout << ChurnPage(rows);
  } else {
    ExpectGolden("../../docs/generated/churn.md", ChurnPage(rows));
  }
}

}  // namespace
}  // namespace kvasir::testing
