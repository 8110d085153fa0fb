// Good requests over a real socket, and what the answers hold.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/sha256.h"
#include "common/base/typed_error.h"
#include "common/models/catalogue.h"
#include "common/models/model_text.h"
#include "common/rpc/channel.h"
#include "tests/planner/service/planner_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

namespace wire = ::kvasir::planner::v1;
using testing::GoodApplyRequest;
using testing::GoodLayersRequest;
using testing::GoodPlanRequest;
using testing::PlannerRig;

struct Applied {
  std::vector<wire::ApplyPlanResponse> events;
  absl::Status status;
};

class PlannerServiceTest : public ::testing::Test {
 protected:
  template <class Method, class Request, class Response>
  absl::Status Call(Method method, const Request& request, Response& response) {
    return rig_.Call(method, request, response);
  }

  Applied Apply(const wire::ApplyPlanRequest& request) {
    grpc::ClientContext context;
    SetTimeout(context, std::chrono::seconds(60));
    const auto reader = rig_.stub().ApplyPlan(&context, request);
    Applied applied;
    wire::ApplyPlanResponse event;
    while (reader->Read(&event)) {
      applied.events.push_back(event);
    }
    applied.status = FromPeer(reader->Finish(), "planner");
    return applied;
  }

  wire::Deployment Get(const std::string& name) {
    wire::GetDeploymentRequest request;
    request.set_deployment(name);
    wire::GetDeploymentResponse response;
    KVASIR_EXPECT_OK(Call(&wire::PlannerService::Stub::GetDeployment, request, response));
    return response.deployment();
  }

  PlannerRig rig_;
};

TEST_F(PlannerServiceTest, APlanHasItsTextItsIdItsMessageAndItsModels) {
  wire::CreatePlanResponse response;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, GoodPlanRequest(), response));
  ASSERT_TRUE(response.has_plan()) << response.DebugString();
  const wire::PlannedPlan& plan = response.plan();
  EXPECT_EQ(plan.plan_id(), Sha256Hex(plan.canonical_text()));
  EXPECT_EQ(plan.plan().topology().dcp(), 2);
  ASSERT_EQ(plan.plan().pools_size(), 1);
  ASSERT_EQ(plan.plan().pools(0).groups_size(), 2);
  EXPECT_TRUE(plan.plan().pools(0).groups(0).causal());
  EXPECT_FALSE(plan.plan().pools(0).groups(1).causal());
  std::int64_t owned = 0;
  for (const plan::v1::OwnedBytes& bytes : plan.plan().attribution()) {
    owned += bytes.bytes();
  }
  EXPECT_EQ(owned, plan.plan().arena_bytes());
  EXPECT_GT(plan.report().capacities(0).request_count(), 0);
  EXPECT_EQ(response.target_model_text(), ModelToText(*FindInCatalogue("demo-target")));
  EXPECT_EQ(response.draft_model_text(), ModelToText(*FindInCatalogue("demo-dspark")));
}

TEST_F(PlannerServiceTest, EveryFormOfAModelGivesTheSamePlan) {
  wire::CreatePlanResponse by_name;
  wire::CreatePlanResponse by_text;
  wire::CreatePlanRequest request = GoodPlanRequest();
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, request, by_name));
  request.mutable_target()->set_model_text(by_name.target_model_text());
  request.mutable_draft()->set_model_text(by_name.draft_model_text());
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, request, by_text));
  EXPECT_EQ(by_text.plan().plan_id(), by_name.plan().plan_id());
}

TEST_F(PlannerServiceTest, ExplicitLayersPlanInAnyOrder) {
  wire::CreatePlanRequest request = GoodLayersRequest();
  wire::CreatePlanResponse first;
  wire::CreatePlanResponse second;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, request, first));
  ASSERT_TRUE(first.has_plan()) << first.DebugString();
  request.mutable_target()->mutable_layers()->mutable_layers()->SwapElements(0, 1);
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, request, second));
  EXPECT_EQ(second.plan().plan_id(), first.plan().plan_id());
  EXPECT_EQ(first.target_model_text(), "");
}

// A draft's list may say that its blocks have a row more than they draft tokens.
TEST_F(PlannerServiceTest, ExplicitDraftLayersHaveTheirRows) {
  wire::CreatePlanRequest request = GoodLayersRequest();
  plan::v1::LayerSpecList& draft = *request.mutable_draft()->mutable_layers();
  *draft.add_layers() = request.target().layers().layers(0);
  draft.mutable_layers(0)->set_role(plan::v1::MODEL_ROLE_DRAFT);
  draft.mutable_layers(0)->set_causal(false);
  request.mutable_options()->set_draft_tokens(5);
  for (const bool anchor : {false, true}) {
    draft.set_anchor_predicts_nothing(anchor);
    wire::CreatePlanResponse response;
    KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, request, response));
    ASSERT_TRUE(response.has_plan()) << response.DebugString();
    std::int32_t rows = 0;
    for (const plan::v1::Pool& pool : response.plan().plan().pools()) {
      for (const plan::v1::Group& group : pool.groups()) {
        if (group.role() == plan::v1::MODEL_ROLE_DRAFT) rows = group.block_row_count();
      }
    }
    EXPECT_EQ(rows, anchor ? 6 : 5);
  }
}

TEST_F(PlannerServiceTest, LackOfMemoryIsAnAnswerWithTheShortfall) {
  wire::CreatePlanRequest request = GoodPlanRequest();
  request.mutable_options()->set_kv_memory_bytes(0, 40'000);
  wire::CreatePlanResponse response;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, request, response));
  ASSERT_TRUE(response.has_does_not_fit()) << response.DebugString();
  const plan::v1::DoesNotFit& misfit = response.does_not_fit();
  EXPECT_EQ(misfit.given_bytes(), 40'000);
  EXPECT_EQ(misfit.needed_bytes() - misfit.given_bytes(), misfit.shortfall_bytes());
  EXPECT_GT(misfit.shortfall_bytes(), 0);
  EXPECT_NE(misfit.bound_by(), "");
}

TEST_F(PlannerServiceTest, AValidRequestBreaksNoRule) {
  wire::ValidateSpecsRequest request;
  *request.mutable_target() = GoodLayersRequest().target();
  request.mutable_options()->mutable_topology()->set_tp(2);  // memory is not needed here
  wire::ValidateSpecsResponse response;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::ValidateSpecs, request, response));
  EXPECT_EQ(response.refusals_size(), 0) << response.DebugString();
}

TEST_F(PlannerServiceTest, ExplainsFromARequestAndFromAText) {
  wire::ExplainPlanRequest request;
  *request.mutable_request() = GoodPlanRequest();
  wire::ExplainPlanResponse from_request;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::ExplainPlan, request, from_request));
  std::vector<std::string> stages;
  for (const wire::StageTrace& stage : from_request.stages()) {
    stages.push_back(stage.stage());
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"canonical", "validated", "grouped", "packed", "sized",
                                              "graphed", "plan"}));
  EXPECT_GT(from_request.lines_size(), 5);
  // A remedy is the plan of the request with its change.
  ASSERT_GT(from_request.remedies_size(), 0);
  EXPECT_EQ(from_request.remedies(0).plan_id().size(), 64U);
  EXPECT_GT(from_request.remedies(0).capacities_size(), 0);
  request.set_plan_text(from_request.outcome().plan().canonical_text());
  wire::ExplainPlanResponse from_text;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::ExplainPlan, request, from_text));
  EXPECT_GT(from_text.lines_size(), 5);
  EXPECT_EQ(from_text.stages_size(), 0);
}

TEST_F(PlannerServiceTest, AnApplyStreamsItsStepsAndLeavesADeployment) {
  const Applied applied = Apply(GoodApplyRequest());
  KVASIR_ASSERT_OK(applied.status);
  int prepared = 0;
  int committed = 0;
  for (const wire::ApplyPlanResponse& event : applied.events) {
    prepared += event.has_prepared();
    committed += event.has_committed();
    if (event.has_prepared()) {
      EXPECT_EQ(event.prepared().measurements_size(), 1);
      EXPECT_GT(event.prepared().measurements(0).planned_graph_count(), 0);
    }
  }
  EXPECT_EQ(prepared, 2);
  EXPECT_EQ(committed, 2);
  ASSERT_TRUE(applied.events.back().has_done());
  EXPECT_EQ(applied.events.back().done().deployment().state(), wire::DEPLOYMENT_STATE_ACTIVE);
  const wire::Deployment deployment = Get("demo");
  EXPECT_EQ(deployment.state(), wire::DEPLOYMENT_STATE_ACTIVE);
  EXPECT_EQ(deployment.epoch(), 1);
  EXPECT_EQ(deployment.plan_id(), GoodApplyRequest().plan_id());
  EXPECT_EQ(deployment.leader_address(), "node-a:1");
  EXPECT_EQ(deployment.workers_size(), 2);
  EXPECT_FALSE(deployment.has_last_error());
}

TEST_F(PlannerServiceTest, TheLeaderIsWhoeverHasRankZero) {
  wire::ApplyPlanRequest request = GoodApplyRequest();
  request.mutable_workers()->SwapElements(0, 1);
  KVASIR_ASSERT_OK(Apply(request).status);
  EXPECT_EQ(Get("demo").leader_address(), "node-a:1");
}

TEST_F(PlannerServiceTest, APreflightLeavesNothing) {
  wire::ApplyPlanRequest request = GoodApplyRequest();
  request.mutable_preflight();
  const Applied applied = Apply(request);
  KVASIR_ASSERT_OK(applied.status);
  EXPECT_TRUE(applied.events.back().has_done());
  EXPECT_FALSE(rig_.workers().StateOf("demo", "node-a:1").pending.has_value());
  EXPECT_EQ(ReasonOf(rig_.dispatcher().Get("demo").status()), reason::kDeploymentUnknown);
}

TEST_F(PlannerServiceTest, AWorkerThatRestartedIsSeen) {
  KVASIR_ASSERT_OK(Apply(GoodApplyRequest()).status);
  rig_.workers().Forget("demo", "node-b:1");
  wire::Deployment deployment = Get("demo");
  EXPECT_EQ(deployment.state(), wire::DEPLOYMENT_STATE_FAILED);
  EXPECT_EQ(deployment.last_error().reason(), reason::kPlanRetired);
  EXPECT_THAT(deployment.last_error().message(), ::testing::HasSubstr("node-b:1"));
  KVASIR_ASSERT_OK(Apply(GoodApplyRequest()).status);
  deployment = Get("demo");
  EXPECT_EQ(deployment.state(), wire::DEPLOYMENT_STATE_ACTIVE);
  EXPECT_EQ(deployment.epoch(), 2);
}

TEST_F(PlannerServiceTest, AFailedApplyIsTypedAndRemembered) {
  rig_.workers().SetFault([](const WorkerCall& call) {
    return call.kind == CallKind::kPrepare ? MakeError({.code = absl::StatusCode::kFailedPrecondition,
                                                        .reason = reason::kBackendUnsupportedGroup,
                                                        .message = "group target.kda is recurrent"})
                                           : absl::OkStatus();
  });
  const Applied applied = Apply(GoodApplyRequest());
  EXPECT_EQ(ReasonOf(applied.status), reason::kBackendUnsupportedGroup);
  EXPECT_EQ(applied.status.code(), absl::StatusCode::kFailedPrecondition);
  const wire::Deployment deployment = Get("demo");
  EXPECT_EQ(deployment.state(), wire::DEPLOYMENT_STATE_FAILED);
  EXPECT_EQ(deployment.last_error().reason(), reason::kBackendUnsupportedGroup);
  EXPECT_EQ(deployment.leader_address(), "");
}

TEST_F(PlannerServiceTest, TheApplyGoesOnWhenItsStreamBreaks) {
  rig_.workers().Hold(CallKind::kPrepare);
  {
    grpc::ClientContext context;
    SetTimeout(context, std::chrono::seconds(60));
    const auto reader = rig_.stub().ApplyPlan(&context, GoodApplyRequest());
    rig_.workers().WaitFor(CallKind::kPrepare);
    EXPECT_EQ(Get("demo").state(), wire::DEPLOYMENT_STATE_PREPARING);
    EXPECT_EQ(Get("demo").pending_epoch(), 1);
    EXPECT_EQ(ReasonOf(Apply(GoodApplyRequest()).status), reason::kApplyInProgress);
    context.TryCancel();
    (void)reader->Finish();  // cancelled
  }
  rig_.workers().Release();
  ASSERT_TRUE(rig_.dispatcher().WaitIdle(20'000));
  EXPECT_EQ(Get("demo").state(), wire::DEPLOYMENT_STATE_ACTIVE);
}

TEST_F(PlannerServiceTest, ADeleteFreesAndForgets) {
  KVASIR_ASSERT_OK(Apply(GoodApplyRequest()).status);
  rig_.workers().SetFault([](const WorkerCall& call) {
    return call.target.address == "node-b:1" ? MakeError({.code = absl::StatusCode::kUnavailable,
                                                          .reason = reason::kPeerUnreachable,
                                                          .message = "gone"})
                                             : absl::OkStatus();
  });
  wire::DeleteDeploymentRequest request;
  request.set_deployment("demo");
  wire::DeleteDeploymentResponse response;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::DeleteDeployment, request, response));
  EXPECT_EQ(response.epoch(), 2);
  ASSERT_EQ(response.unreachable_workers_size(), 1);
  EXPECT_EQ(response.unreachable_workers(0), "node-b:1");
  EXPECT_FALSE(rig_.workers().StateOf("demo", "node-a:1").running.has_value());
  const absl::Status again = Call(&wire::PlannerService::Stub::DeleteDeployment, request, response);
  EXPECT_EQ(ReasonOf(again), reason::kDeploymentUnknown);
}

}  // namespace
}  // namespace kvasir
