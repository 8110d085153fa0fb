#include "worker/engine/graph_registry.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_format.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/fault_backend.h"
#include "tests/testing/matchers.h"
#include "worker/cpu/cpu_backend.h"

namespace kvasir {
namespace {

using testing::FaultBackend;
using testing::MakeEnginePlan;
using testing::StatusIs;

class GraphRegistryTest : public ::testing::Test {
 protected:
  // One AddOp per graph: x += y over fixed buffers.
  GraphRegistry::BuildList Adds() {
    return [this](const PassShape& shape) {
      built_.push_back(absl::StrFormat("%s/%d/%d", PassName(shape.pass), shape.query_rows, shape.requests));
      return LaunchList{AddOp{.x = &x_, .y = &y_, .count = 1}};
    };
  }

  std::unique_ptr<Backend> cpu_ = MakeCpuBackend({});
  FaultBackend backend_{*cpu_};
  std::vector<std::string> built_;
  float x_ = 0;
  float y_ = 1;
};

TEST_F(GraphRegistryTest, CapturesEveryGraphOfThePlanLargestFirst) {
  const Plan plan = MakeEnginePlan({.draft_tokens = 3, .max_requests = 3});
  const auto registry = GraphRegistry::Capture(backend_, plan, Adds());
  KVASIR_ASSERT_OK(registry);
  EXPECT_EQ(registry->size(), 12);  // 4 passes, buckets 1, 2 and 3
  EXPECT_EQ(built_[0], "target_verify/4/3");
  EXPECT_EQ(built_[1], "draft_context/4/3");
  EXPECT_EQ(built_[2], "draft_block/3/3");
  EXPECT_EQ(built_.back(), "target_decode/1/1");
}

TEST_F(GraphRegistryTest, ReplaysOnlyForTheGroupsItWasCapturedFor) {
  const Plan plan = MakeEnginePlan({});
  auto registry = GraphRegistry::Capture(backend_, plan, Adds());
  KVASIR_ASSERT_OK(registry);
  const PassShape shape{.pass = Pass::kTargetVerify, .requests = 2, .query_rows = 4};
  const std::vector<GroupBehaviour> right = BehavioursOf(plan, Pass::kTargetVerify);
  KVASIR_EXPECT_OK(registry->Replay(shape, right));
  EXPECT_EQ(x_, 1);
  const auto expect_refused = [&](const std::vector<GroupBehaviour>& groups, const char* message) {
    EXPECT_THAT(registry->Replay(shape, groups), StatusIs(absl::StatusCode::kFailedPrecondition, message));
  };
  std::vector<GroupBehaviour> other = right;
  other[0].behaviour.causal = false;
  expect_refused(other,
                 "graph target_verify q=4 bucket=2 was captured for [group 0: target, attention, causal=1");
  other = right;
  other[0].behaviour.block_rows = 1;
  expect_refused(other, "the step has [group 0: target, attention, causal=1, window=0, block_rows=1");
  other = right;
  other[0].group = GroupId(1);
  expect_refused(other, "the step has [group 1");
  expect_refused({}, "the step has [no group]");
  other = right;
  other.push_back(right[0]);
  expect_refused(other, "was captured for [no group]");
  EXPECT_EQ(x_, 1);  // nothing ran
  EXPECT_THAT(registry->Replay({Pass::kTargetVerify, 3, 4}, right),
              StatusIs(absl::StatusCode::kNotFound, "bucket=3 was not captured"));
}

TEST_F(GraphRegistryTest, TheStepsGroupsComeFromItsMetadata) {
  const Plan plan = MakeEnginePlan({.draft_first = true});
  for (const Pass pass : {Pass::kTargetDecode, Pass::kTargetVerify, Pass::kDraftContext, Pass::kDraftBlock}) {
    const PassMetadata metadata =
        MetadataBuilder(plan, RankPlace{}).Build({.pass = pass, .requests = 1, .query_rows = 1}, {});
    EXPECT_EQ(BehavioursOf(metadata), BehavioursOf(plan, pass));
  }
  EXPECT_NE(BehavioursOf(plan, Pass::kDraftBlock), BehavioursOf(plan, Pass::kTargetVerify));
}

TEST_F(GraphRegistryTest, PicksTheSmallestBucketThatHoldsTheRequests) {
  const Plan plan = MakeEnginePlan({.max_requests = 6});  // buckets 1, 2, 4, 6
  const auto bucket = [&](std::int64_t requests) {
    return BucketFor(plan, Pass::kTargetDecode, 1, requests);
  };
  EXPECT_EQ(bucket(1), 1);
  EXPECT_EQ(bucket(2), 2);
  EXPECT_EQ(bucket(3), 4);
  EXPECT_EQ(bucket(5), 6);
  EXPECT_EQ(bucket(7), std::nullopt);
  EXPECT_EQ(BucketFor(plan, Pass::kTargetPrefill, 8, 1), std::nullopt);
}

TEST_F(GraphRegistryTest, RefusesAGraphOverOtherGroups) {
  Plan plan = MakeEnginePlan({});
  for (PlanGraph& graph : plan.graphs) {
    if (graph.pass == Pass::kDraftBlock) graph.groups = {GroupId(0)};  // the target's
  }
  EXPECT_THAT(GraphRegistry::Capture(backend_, plan, Adds()),
              StatusIs(absl::StatusCode::kInvalidArgument, "graph draft_block q=3"));
}

TEST_F(GraphRegistryTest, AFailedCaptureNamesTheGraphAndLeavesNone) {
  backend_.FailCall(3);
  EXPECT_THAT(
      GraphRegistry::Capture(backend_, MakeEnginePlan({}), Adds()),
      StatusIs(absl::StatusCode::kAborted, "graph draft_block q=3 bucket=4: planted fault at Capture"));
  EXPECT_EQ(backend_.live_graphs(), 0);
}

// The builder's memory is its own again after the capture; the values at the fixed addresses are read at
// replay.
TEST_F(GraphRegistryTest, AGraphDoesNotLookAtTheListItWasCapturedFrom) {
  LaunchList list{AddOp{.x = &x_, .y = &y_, .count = 1}};
  const auto graph = backend_.Capture(list);
  KVASIR_ASSERT_OK(graph);
  float other = 100;
  list[0] = AddOp{.x = &other, .y = &other, .count = 1};
  list.clear();
  list.shrink_to_fit();
  y_ = 5;
  KVASIR_EXPECT_OK((*graph)->Replay());
  KVASIR_EXPECT_OK((*graph)->Replay());
  EXPECT_EQ(x_, 10);
  EXPECT_EQ(other, 100);
}

}  // namespace
}  // namespace kvasir
