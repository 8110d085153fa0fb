// Two plans beside each other: capacity at the same lengths, every field that differs, the gate.
#include "planner/core/compare_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>

#include "planner/core/capacity.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/k3_request.h"

namespace kvasir {
namespace {

using testing::K3Request;

Plan PlanOf(const testing::K3Options& options) {
  return std::get<Planned>(MakePlan(K3Request(options))).plan;
}

const FieldChange* Find(const PlanComparison& comparison, const std::string& field) {
  for (const FieldChange& change : comparison.fields) {
    if (change.field == field) return &change;
  }
  return nullptr;
}

TEST(ComparePlansTest, APlanIsLikeItself) {
  const Plan plan = PlanOf({});
  const PlanComparison comparison = ComparePlans(plan, plan);
  EXPECT_TRUE(comparison.fields.empty());
  ASSERT_EQ(comparison.capacity.size(), 3U);
  for (const CapacityChange& change : comparison.capacity) {
    EXPECT_EQ(change.before, change.after);
    EXPECT_EQ(change.before, CapacityAt(plan, change.context_tokens));
    EXPECT_FALSE(LosesMoreThan(change, 0));
  }
}

TEST(ComparePlansTest, ARollbackChangesTheStatesAndWhatIsAdmitted) {
  const Plan replay = PlanOf({.rollback = RollbackChoice::kReplay});
  const Plan snapshots = PlanOf({.rollback = RollbackChoice::kSnapshots});
  const PlanComparison comparison = ComparePlans(replay, snapshots);
  const FieldChange* rollback = Find(comparison, "rollback");
  ASSERT_NE(rollback, nullptr);
  EXPECT_EQ(rollback->kind, FieldKind::kAsked);
  EXPECT_EQ(rollback->before, "replay");
  EXPECT_EQ(rollback->after, "snapshots");
  EXPECT_NE(Find(comparison, "pool state: lifetime"), nullptr);
  EXPECT_EQ(Find(comparison, "topology.dcp"), nullptr);
  EXPECT_EQ(Find(comparison, "group target.mla: rows"), nullptr);
  EXPECT_TRUE(std::is_sorted(comparison.fields.begin(), comparison.fields.end(),
                             [](const auto& a, const auto& b) { return a.kind < b.kind; }));
  for (const CapacityChange& change : comparison.capacity) {
    EXPECT_LT(change.after.requests, change.before.requests);
    EXPECT_TRUE(LosesMoreThan(change, 1000));
  }
}

TEST(ComparePlansTest, WhatOnlyOnePlanHasIsEmptyInTheOther) {
  const PlanComparison comparison = ComparePlans(PlanOf({}), PlanOf({.draft_tokens = 0}));
  const FieldChange* layers = Find(comparison, "group draft.mla: layers");
  ASSERT_NE(layers, nullptr);
  EXPECT_FALSE(layers->before.empty());
  EXPECT_EQ(layers->after, "");
  const FieldChange* draft = Find(comparison, "draft");
  ASSERT_NE(draft, nullptr);
  EXPECT_EQ(draft->after, "");
  const PlanComparison back = ComparePlans(PlanOf({.draft_tokens = 0}), PlanOf({}));
  ASSERT_NE(Find(back, "draft"), nullptr);
  EXPECT_EQ(Find(back, "draft")->before, "");
}

// A plan admits nothing that is longer than its longest sequence, so a shorter plan loses everything there.
TEST(ComparePlansTest, AShorterPlanLosesTheLongLengths) {
  const PlanComparison comparison =
      ComparePlans(PlanOf({.context_tokens = 131072}), PlanOf({.context_tokens = 40000}));
  ASSERT_EQ(comparison.capacity.size(), 4U);  // 8192, 32768, 40000, 131072
  EXPECT_EQ(comparison.capacity[2].context_tokens, 40000);
  EXPECT_GT(comparison.capacity[2].after.requests, 0);
  EXPECT_EQ(comparison.capacity[3].after.requests, 0);
  EXPECT_TRUE(LosesMoreThan(comparison.capacity[3], 9999));
  EXPECT_FALSE(LosesMoreThan(comparison.capacity[3], 10000));
}

// Other texts are other plans, whatever the fields say.
TEST(ComparePlansTest, WhatIsNoFieldIsShownAsALine) {
  const Plan plan = PlanOf({});
  Plan renamed = plan;
  renamed.pools.front().groups.front().layers.front().name += ".renamed";
  const PlanComparison comparison = ComparePlans(plan, renamed);
  ASSERT_EQ(comparison.fields.size(), 1U);
  EXPECT_EQ(comparison.fields.front().field, "text");
  EXPECT_EQ(comparison.fields.front().before.find("renamed"), std::string::npos);
  EXPECT_NE(comparison.fields.front().after.find("renamed"), std::string::npos);
  EXPECT_EQ(comparison.fields.front().after.find('\n'), std::string::npos);
}

TEST(ComparePlansTest, TheLimitIsExact) {
  CapacityChange change;
  change.before.requests = 200;
  change.after.requests = 196;
  EXPECT_FALSE(LosesMoreThan(change, 200));  // 2 % of 200 is 4
  change.after.requests = 195;
  EXPECT_TRUE(LosesMoreThan(change, 200));
  change.after.requests = 500;
  EXPECT_FALSE(LosesMoreThan(change, 0));
  change.before.requests = 0;
  EXPECT_FALSE(LosesMoreThan(change, 0));
}

// Attributions of both plans sum to their arenas, so the changed bytes sum to the arenas' difference.
TEST(ComparePlansTest, ChangedBytesSumToTheArenasDifference) {
  const Plan small = PlanOf({.kv_memory_bytes = std::int64_t{20} << 30});
  const Plan large = PlanOf({});
  std::int64_t change = 0;
  for (const FieldChange& field : ComparePlans(small, large).fields) {
    if (field.kind != FieldKind::kBytes) continue;
    change += (field.after.empty() ? 0 : std::stoll(field.after)) -
              (field.before.empty() ? 0 : std::stoll(field.before));
  }
  EXPECT_EQ(change, (large.arena_bytes - small.arena_bytes).value());
}

}  // namespace
}  // namespace kvasir
