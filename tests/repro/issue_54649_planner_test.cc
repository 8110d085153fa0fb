// vllm-project/vllm#54649, planner side. There a causal target and a non-causal draft of equal cache layout
// were merged into one group; an assertion that guarded the merge was compiled out, an arbitrary element of a
// set of two flags was taken, and a graph replayed with the wrong metadata. The first repair, OR over the
// group, handed the draft's flag to the target. Here behaviour is a key of its own: whatever the order of
// registration, equal layouts share one pool and never a group, and each graph names only groups whose flag
// is the flag of its pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "common/plan/plan_text.h"
#include "common/plan/verify.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/k3_request.h"
#include "tests/testing/matchers.h"
#include "tests/testing/window_request.h"

namespace kvasir {
namespace {

using testing::AttentionLayer;

enum class Order { kTargetFirst, kDraftFirst, kInterleaved };

struct Case {
  std::string name;
  Order order;
  std::int64_t dcp;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Two target and two draft layers that agree in every byte of their layout.
PlanRequest EqualLayouts(const Case& c) {
  constexpr std::int64_t kDraftTokens = 7;
  PlanRequest request = testing::WindowRequest({.dcp = c.dcp, .draft_tokens = kDraftTokens});
  request.layers.clear();
  request.target.layers = 2;
  request.draft->target_layers = 2;
  request.draft->target_taps = {0, 1};
  std::vector<LayerSpec> target;
  std::vector<LayerSpec> draft;
  for (std::int32_t i = 0; i < 2; ++i) {
    target.push_back(AttentionLayer(Role::kTarget, i, kDraftTokens));
    draft.push_back(AttentionLayer(Role::kDraft, i, kDraftTokens));
    target.back().layout.sharded = draft.back().layout.sharded = c.dcp > 1;
  }
  EXPECT_EQ(target[0].layout, draft[0].layout);
  switch (c.order) {
    case Order::kTargetFirst:
      request.layers = {target[0], target[1], draft[0], draft[1]};
      break;
    case Order::kDraftFirst:
      request.layers = {draft[0], draft[1], target[0], target[1]};
      break;
    case Order::kInterleaved:
      request.layers = {draft[1], target[0], draft[0], target[1]};
      break;
  }
  for (std::size_t i = 0; i < 4; ++i) request.layers[i].registration_index = static_cast<std::int64_t>(i);
  return request;
}

class Issue54649 : public ::testing::TestWithParam<Case> {};

// https://github.com/vllm-project/vllm/issues/54649: equal layouts put target and draft into one group. Here
// they share a pool, and each role has a group with its own flag.
TEST_P(Issue54649, EqualLayoutsShareAPoolAndNeverAGroup) {
  const PlanOutcome outcome = MakePlan(EqualLayouts(GetParam()));
  ASSERT_TRUE(std::holds_alternative<Planned>(outcome));
  const Plan& plan = std::get<Planned>(outcome).plan;
  ASSERT_EQ(plan.pools.size(), 1U);
  ASSERT_EQ(plan.pools[0].groups.size(), 2U);
  const PlanGroup& target = plan.pools[0].groups[0];
  const PlanGroup& draft = plan.pools[0].groups[1];
  EXPECT_EQ(target.behaviour.role, Role::kTarget);
  EXPECT_TRUE(target.behaviour.causal);
  EXPECT_EQ(draft.behaviour.role, Role::kDraft);
  EXPECT_FALSE(draft.behaviour.causal);
  EXPECT_NE(target.id, draft.id) << "a group has one set of metadata";
  for (const PlanLayer& layer : target.layers) EXPECT_EQ(layer.id.role, Role::kTarget);
  for (const PlanLayer& layer : draft.layers) EXPECT_EQ(layer.id.role, Role::kDraft);
  EXPECT_EQ(target.layers[0].layout, draft.layers[0].layout);
}

TEST_P(Issue54649, EachGraphNamesTheGroupsOfItsFlag) {
  const PlanOutcome outcome = MakePlan(EqualLayouts(GetParam()));
  ASSERT_TRUE(std::holds_alternative<Planned>(outcome));
  const Plan& plan = std::get<Planned>(outcome).plan;
  const std::vector<const PlanGroup*> groups = GroupsOf(plan);
  ASSERT_FALSE(plan.graphs.empty());
  for (const PlanGraph& graph : plan.graphs) {
    const bool draft = graph.pass == Pass::kDraftContext || graph.pass == Pass::kDraftBlock;
    ASSERT_EQ(graph.groups.size(), 1U) << PassName(graph.pass);
    const BehaviourKey& behaviour = groups[static_cast<std::size_t>(graph.groups[0].value())]->behaviour;
    EXPECT_EQ(behaviour.causal, !draft) << PassName(graph.pass) << " bucket " << graph.bucket;
    EXPECT_EQ(behaviour.role == Role::kDraft, draft) << PassName(graph.pass);
    if (graph.pass == Pass::kDraftBlock || graph.pass == Pass::kTargetVerify) {
      EXPECT_EQ(graph.query_rows, behaviour.block_rows) << PassName(graph.pass);
    }
  }
}

// Swapping the flags of the two groups is a plan that no worker accepts.
TEST_P(Issue54649, SwappedFlagsAreNoPlan) {
  const PlanOutcome outcome = MakePlan(EqualLayouts(GetParam()));
  ASSERT_TRUE(std::holds_alternative<Planned>(outcome));
  Plan plan = std::get<Planned>(outcome).plan;
  std::swap(plan.pools[0].groups[0].behaviour.causal, plan.pools[0].groups[1].behaviour.causal);
  EXPECT_THAT(VerifyPlan(plan),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, "a target verifies causally"));
  // The first repair: both flags become the OR of "non-causal".
  plan.pools[0].groups[0].behaviour.causal = false;
  plan.pools[0].groups[1].behaviour.causal = false;
  EXPECT_THAT(VerifyPlan(plan),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, "a target verifies causally"));
}

INSTANTIATE_TEST_SUITE_P(, Issue54649,
                         ::testing::Values(Case{"target_first", Order::kTargetFirst, 1},
                                           Case{"draft_first", Order::kDraftFirst, 1},
                                           Case{"interleaved", Order::kInterleaved, 1},
                                           Case{"target_first_dcp", Order::kTargetFirst, 2},
                                           Case{"draft_first_dcp", Order::kDraftFirst, 2},
                                           Case{"interleaved_dcp", Order::kInterleaved, 4}),
                         [](const auto& param) { return param.param.name; });

TEST(Issue54649Orders, GiveOnePlan) {
  std::vector<std::string> ids;
  for (const Order order : {Order::kTargetFirst, Order::kDraftFirst, Order::kInterleaved}) {
    const PlanOutcome outcome = MakePlan(EqualLayouts({"", order, 2}));
    ASSERT_TRUE(std::holds_alternative<Planned>(outcome));
    ids.push_back(std::get<Planned>(outcome).plan_id);
  }
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[0], ids[2]);
}

// The issue's own models: Kimi-K3 with DSpark over 8 context-parallel ranks. A backend that cannot decode a
// non-causal block over a sharded cache is refused by name; the causal target's backend is not accused.
TEST(Issue54649Refusal, NamesTheDraftsBackendAndNeverTheTargets) {
  PlanRequest request = testing::K3Request();
  for (BackendFacts& facts : request.backends) facts.non_causal_multi_token_dcp = false;
  const PlanOutcome outcome = MakePlan(request);
  ASSERT_TRUE(std::holds_alternative<Refusals>(outcome));
  const std::vector<Refusal>& refusals = std::get<Refusals>(outcome).refusals;
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(RuleName(refusals[0].rule), "DRAFT_BACKEND_NON_CAUSAL_DCP");
  EXPECT_EQ(refusals[0].subjects.size(), 5U);
  EXPECT_EQ(refusals[0].subjects.front(), "draft.layers.0");
}

}  // namespace
}  // namespace kvasir
