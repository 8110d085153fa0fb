// The native ruleset as a whole: figures of Kimi-K3, its golden plan and trace, what is chosen and why.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "common/plan/verify.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/golden.h"
#include "tests/testing/k3_request.h"
#include "tests/testing/matchers.h"
#include "tests/testing/window_request.h"

namespace kvasir {
namespace {

using testing::K3Options;
using testing::K3Request;
using testing::WindowRequest;

Planned PlanOrDie(const PlanRequest& request, const TraceSink& trace = {}) {
  PlanOutcome outcome = MakePlan(request, trace);
  if (const auto* refusals = std::get_if<Refusals>(&outcome)) {
    for (const Refusal& refusal : refusals->refusals) ADD_FAILURE() << RefusalText(refusal);
  }
  EXPECT_TRUE(std::holds_alternative<Planned>(outcome));
  return std::holds_alternative<Planned>(outcome) ? std::get<Planned>(std::move(outcome)) : Planned();
}

struct CapacityCase {
  std::string name;
  K3Options options;
  StateRollback rollback;
  std::vector<std::int64_t> at_least;  // requests of 8192, 32768, 131072 tokens
};

void PrintTo(const CapacityCase& c, std::ostream* out) { *out << c.name; }

class K3Capacity : public ::testing::TestWithParam<CapacityCase> {};

// Figures of the two-level layout for 46.8 GiB per rank at TP 8 x DCP 8.
TEST_P(K3Capacity, ReachesTheFigures) {
  const Planned planned = PlanOrDie(K3Request(GetParam().options));
  EXPECT_EQ(planned.plan.rollback, GetParam().rollback);
  ASSERT_EQ(planned.report.capacity.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GE(planned.report.capacity[i].requests, GetParam().at_least[i])
        << planned.report.capacity[i].context_tokens;
    // What is guaranteed under churn is at most three parents less, and three parents hold at most two
    // requests here.
    EXPECT_GE(planned.report.capacity[i].guaranteed_requests, planned.report.capacity[i].requests - 3);
    EXPECT_LE(planned.report.capacity[i].guaranteed_requests, planned.report.capacity[i].requests);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , K3Capacity,
    ::testing::Values(
        CapacityCase{"auto", {}, StateRollback::kReplay, {509, 249, 82}},
        CapacityCase{"replay", {.rollback = RollbackChoice::kReplay}, StateRollback::kReplay, {509, 249, 82}},
        CapacityCase{
            "snapshots", {.rollback = RollbackChoice::kSnapshots}, StateRollback::kSnapshots, {95, 79, 47}},
        CapacityCase{"no_draft", {.draft_tokens = 0}, StateRollback::kNone, {588, 293, 97}}),
    [](const auto& param) { return param.param.name; });

TEST(NativeK3, BytesPerRequestAreThoseOfTheLayers) {
  const Planned planned = PlanOrDie(K3Request());
  // 69 states of 786432 + 92160 bytes with rings of 43344, and 29 rows of 1152 bytes for 1024 of 8192 tokens.
  constexpr std::int64_t kState = std::int64_t{69} * (786432 + 92160 + 43344);
  constexpr std::int64_t kTokens = std::int64_t{29} * 1152 * 1024;
  const std::int64_t bytes = planned.report.capacity[0].bytes_per_request.value();
  EXPECT_GE(bytes, kState + kTokens);
  EXPECT_LE(bytes, (kState + kTokens) * 101 / 100) << "more than one percent of waste";
}

TEST(NativeK3, HasOneTokenPoolOfTwoGroupsAndOneStatePool) {
  const Plan plan = PlanOrDie(K3Request()).plan;
  ASSERT_EQ(plan.pools.size(), 2U);
  EXPECT_EQ(plan.pools[0].name, "tokens");
  EXPECT_TRUE(plan.pools[0].sharded);
  ASSERT_EQ(plan.pools[0].groups.size(), 2U);
  EXPECT_EQ(plan.pools[0].groups[0].name, "target.mla");
  EXPECT_EQ(plan.pools[0].groups[0].layers.size(), 24U);
  EXPECT_TRUE(plan.pools[0].groups[0].behaviour.causal);
  EXPECT_EQ(plan.pools[0].groups[1].name, "draft.mla");
  EXPECT_EQ(plan.pools[0].groups[1].layers.size(), 5U);
  EXPECT_FALSE(plan.pools[0].groups[1].behaviour.causal);
  EXPECT_EQ(plan.pools[1].name, "state");
  EXPECT_FALSE(plan.pools[1].sharded);
  ASSERT_EQ(plan.pools[1].groups.size(), 1U);
  EXPECT_EQ(plan.pools[1].groups[0].layers.size(), 69U);
}

TEST(NativeK3, ReportsTheRollbackThatWasNotChosen) {
  const Planned planned = PlanOrDie(K3Request());
  ASSERT_EQ(planned.report.rollback_options.size(), 2U);
  const RollbackOption& snapshots = planned.report.rollback_options[0];
  EXPECT_EQ(snapshots.rollback, StateRollback::kSnapshots);
  EXPECT_FALSE(snapshots.chosen);
  EXPECT_GE(snapshots.capacity.at(2).requests, 47);
  EXPECT_TRUE(planned.report.rollback_options[1].chosen);
}

TEST(NativeK3, AutoTakesSnapshotsWhereALayerDeclaresNoRing) {
  PlanRequest request = K3Request();
  request.layers[0].layout.ring.clear();
  const Planned planned = PlanOrDie(request);
  EXPECT_EQ(planned.plan.rollback, StateRollback::kSnapshots);
  EXPECT_FALSE(planned.report.rollback_options.at(1).possible);
}

TEST(NativeK3, LongestContextIsTheModelsLimit) {
  const Planned planned = PlanOrDie(K3Request());
  EXPECT_EQ(planned.report.longest_context_tokens, 1048576);
  EXPECT_TRUE(planned.report.longest_is_model_limit);
}

// The golden plan is also what other tests and readers take as the example of the format.
TEST(NativeGolden, KimiK3WithDspark) {
  std::string trace;
  const Planned planned = PlanOrDie(K3Request(), [&](std::string_view stage, std::string_view text) {
    if (stage == "plan") return;
    trace += "== " + std::string(stage) + "\n" + std::string(text);
  });
  testing::ExpectGolden("plan/kimi_k3_dspark.txt", planned.text);
  testing::ExpectGolden("plan/kimi_k3_dspark.trace.txt", trace);
}

TEST(NativeGolden, WindowsAndADraftOfTheSameLayout) {
  testing::ExpectGolden("plan/window_draft.txt", PlanOrDie(WindowRequest()).text);
}

TEST(NativeWindow, HasAPoolPerLifetimeAndMinimalBlocks) {
  const Planned planned = PlanOrDie(WindowRequest());
  ASSERT_EQ(planned.plan.pools.size(), 2U);
  EXPECT_EQ(planned.plan.pools[0].name, "tokens");
  EXPECT_EQ(planned.plan.pools[1].name, "window.1024");
  EXPECT_FALSE(planned.plan.pools[1].sharded);
  EXPECT_EQ(planned.plan.pools[1].groups.at(0).name, "target.attention.w1024");
}

TEST(NativeTiny, NeedsNoDraft) {
  const Planned planned = PlanOrDie(testing::TinyRequest());
  EXPECT_EQ(planned.plan.draft_tokens, 0);
  EXPECT_EQ(planned.plan.graphs.size(), 3U) << "target_decode in buckets 1, 2, 4";
  KVASIR_EXPECT_OK(VerifyPlan(planned.plan));
}

TEST(NativeTiny, LargestBucketIsMaxRequestsEvenIfNoPowerOfTwo) {
  PlanRequest request = testing::TinyRequest();
  request.max_requests = 17;
  const Planned planned = PlanOrDie(request);
  std::vector<std::int64_t> buckets;
  buckets.reserve(planned.plan.graphs.size());
  for (const PlanGraph& graph : planned.plan.graphs) buckets.push_back(graph.bucket);
  EXPECT_EQ(buckets, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 17}));
}

}  // namespace
}  // namespace kvasir
