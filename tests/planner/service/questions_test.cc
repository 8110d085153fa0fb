// Questions over many plans on a real socket: the same answers as in-process, typed errors, an end with the
// call.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/sha256.h"
#include "common/base/typed_error.h"
#include "common/rpc/channel.h"
#include "planner/service/answer_questions.h"
#include "tests/planner/service/planner_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

namespace wire = ::kvasir::planner::v1;
using testing::GoodPlanRequest;
using testing::PlannerRig;

struct Swept {
  std::vector<wire::SweepPoint> points;
  wire::SweepPlansResponse last;
  absl::Status status;
};

class PlannerQuestionsTest : public ::testing::Test {
 protected:
  template <class Method, class Request, class Response>
  absl::Status Call(Method method, const Request& request, Response& response) {
    return rig_.Call(method, request, response);
  }

  std::string PlanText(std::int64_t kv_memory_bytes) {
    wire::CreatePlanRequest request = GoodPlanRequest();
    request.mutable_options()->set_kv_memory_bytes(0, kv_memory_bytes);
    wire::CreatePlanResponse response;
    KVASIR_EXPECT_OK(Call(&wire::PlannerService::Stub::CreatePlan, request, response));
    return response.plan().canonical_text();
  }

  Swept Sweep(const wire::SweepPlansRequest& request) {
    grpc::ClientContext context;
    SetTimeout(context, std::chrono::seconds(60));
    const auto reader = rig_.stub().SweepPlans(&context, request);
    Swept swept;
    wire::SweepPlansResponse part;
    while (reader->Read(&part)) {
      swept.points.insert(swept.points.end(), part.points().begin(), part.points().end());
      swept.last = part;
    }
    swept.status = FromPeer(reader->Finish(), "planner");
    return swept;
  }

  PlannerRig rig_;
};

// The demo's pair; what is looked for does not count.
wire::SolvePlanRequest Looking(wire::SolveGoal goal) {
  const wire::CreatePlanRequest plan = GoodPlanRequest();
  wire::SolvePlanRequest request;
  request.set_goal(goal);
  *request.mutable_target() = plan.target();
  *request.mutable_draft() = plan.draft();
  *request.mutable_options() = plan.options();
  return request;
}

wire::SweepPlansRequest Grid() {
  const wire::CreatePlanRequest plan = GoodPlanRequest();
  wire::SweepPlansRequest request;
  *request.mutable_target() = plan.target();
  *request.mutable_draft() = plan.draft();
  *request.mutable_options() = plan.options();
  request.mutable_axes()->add_tps(1);
  request.mutable_axes()->add_tps(2);
  request.mutable_axes()->add_dcps(1);
  request.mutable_axes()->add_dcps(2);
  return request;
}

TEST_F(PlannerQuestionsTest, ComparesPlansByTheirTexts) {
  wire::ComparePlansRequest request;
  request.set_before_plan_text(PlanText(16 << 20));
  request.set_after_plan_text(PlanText(8 << 20));
  wire::ComparePlansResponse response;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::ComparePlans, request, response));
  EXPECT_EQ(response.before_plan_id(), Sha256Hex(request.before_plan_text()));
  ASSERT_GT(response.capacity_changes_size(), 0);
  const wire::CapacityChange& longest = response.capacity_changes(response.capacity_changes_size() - 1);
  EXPECT_LT(longest.after().request_count(), longest.before().request_count());
  ASSERT_GT(response.field_changes_size(), 0);
  EXPECT_EQ(response.field_changes(0).field(), "arena_bytes");
  EXPECT_EQ(response.field_changes(0).before(), std::to_string(16 << 20));
}

TEST_F(PlannerQuestionsTest, ComparesWithTheEnginesLayouts) {
  wire::CompareWithEngineRequest request;
  plan::v1::PlanOptions& options = *request.mutable_request()->mutable_options();
  request.mutable_request()->mutable_target()->set_catalogue_name("kimi-k3");
  request.mutable_request()->mutable_draft()->set_catalogue_name("kimi-k3-dspark");
  options.mutable_topology()->set_tp(8);
  options.mutable_topology()->set_dcp(8);
  options.add_kv_memory_bytes(std::int64_t{46} << 30);
  options.add_context_tokens(131072);
  wire::CompareWithEngineResponse response;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CompareWithEngine, request, response));
  EXPECT_TRUE(response.outcome().has_plan()) << response.outcome().DebugString();
  EXPECT_EQ(response.why_none(), "");
  ASSERT_EQ(response.lengths_size(), 3);
  for (const wire::EngineLength& length : response.lengths()) {
    ASSERT_EQ(length.modes_size(), 3) << length.DebugString();
    EXPECT_EQ(length.modes(0).mode(), "merged");
    for (const wire::EngineModeCount& mode : length.modes()) {
      EXPECT_GT(mode.request_count(), 0);
      EXPECT_GT(length.plan().request_count(), mode.request_count());
    }
  }
  options.mutable_kv_memory_bytes()->Set(0, 1 << 20);
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CompareWithEngine, request, response));
  EXPECT_FALSE(response.outcome().has_plan());
  EXPECT_EQ(response.lengths_size(), 0);
}

// As the command line does, so that both give one plan.
TEST_F(PlannerQuestionsTest, UnsaidAsManyAreDraftedAsTheDraftWasTrainedFor) {
  wire::CreatePlanRequest request;
  request.mutable_target()->set_catalogue_name("qwen3-8b");
  request.mutable_draft()->set_catalogue_name("qwen3-8b-dflash");
  request.mutable_options()->add_kv_memory_bytes(std::int64_t{8} << 30);
  request.mutable_options()->add_context_tokens(8192);
  wire::CreatePlanResponse unsaid;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, request, unsaid));
  ASSERT_TRUE(unsaid.has_plan()) << unsaid.DebugString();
  request.mutable_options()->set_draft_tokens(15);
  wire::CreatePlanResponse said;
  KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, request, said));
  EXPECT_EQ(unsaid.plan().plan_id(), said.plan().plan_id());
}

TEST_F(PlannerQuestionsTest, RefusesComparisonsThatAreNone) {
  wire::CompareWithEngineRequest request;
  wire::CompareWithEngineResponse response;
  const auto error = [&] {
    return ErrorOf(Call(&wire::PlannerService::Stub::CompareWithEngine, request, response));
  };
  EXPECT_EQ(error().field, "request");
  *request.mutable_request() = GoodPlanRequest();
  request.set_engine_ruleset("native");
  EXPECT_EQ(error().field, "engine_ruleset");
  request.set_engine_ruleset("vllm-2026-08");
  request.mutable_request()->mutable_options()->set_ruleset("vllm-2026-11");
  EXPECT_EQ(error().field, "request.options.ruleset");
  request.mutable_request()->mutable_options()->set_ruleset("native");
  request.mutable_request()->mutable_target()->set_catalogue_name("no-such-model");
  EXPECT_EQ(error().field, "request.target.catalogue_name");
}

TEST_F(PlannerQuestionsTest, RefusesTextsThatAreNoPlans) {
  wire::ComparePlansRequest request;
  wire::ComparePlansResponse response;
  request.set_before_plan_text(PlanText(16 << 20));
  TypedError error = ErrorOf(Call(&wire::PlannerService::Stub::ComparePlans, request, response));
  EXPECT_EQ(error.reason, reason::kMissingField);
  EXPECT_EQ(error.field, "after_plan_text");
  request.set_after_plan_text("no plan");
  error = ErrorOf(Call(&wire::PlannerService::Stub::ComparePlans, request, response));
  EXPECT_EQ(error.reason, reason::kPlanTextInvalid);
}

// CreatePlan with the options of a solution gives its plan.
TEST_F(PlannerQuestionsTest, SolutionsAreThePlansOfTheirOptions) {
  for (const wire::SolveGoal goal : {wire::SOLVE_GOAL_CONTEXT, wire::SOLVE_GOAL_REQUESTS,
                                     wire::SOLVE_GOAL_RANKS, wire::SOLVE_GOAL_MEMORY}) {
    SCOPED_TRACE(wire::SolveGoal_Name(goal));
    wire::SolvePlanResponse response;
    KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::SolvePlan, Looking(goal), response));
    ASSERT_TRUE(response.has_solution()) << response.DebugString();
    wire::CreatePlanRequest again = GoodPlanRequest();
    *again.mutable_options() = response.solution().options();
    wire::CreatePlanResponse plan;
    KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, again, plan));
    EXPECT_EQ(plan.plan().plan_id(), response.solution().plan_id());
    EXPECT_EQ(plan.plan().canonical_text(), response.solution().canonical_text());
    EXPECT_GT(response.solution().value(), 0);
  }
}

TEST_F(PlannerQuestionsTest, SolveSaysWhatIsWrong) {
  wire::SolvePlanResponse response;
  const auto error_of = [&](const wire::SolvePlanRequest& request) {
    return ErrorOf(Call(&wire::PlannerService::Stub::SolvePlan, request, response));
  };
  EXPECT_EQ(error_of(Looking(wire::SOLVE_GOAL_UNSPECIFIED)).field, "goal");
  EXPECT_EQ(error_of(Looking(static_cast<wire::SolveGoal>(99))).reason, reason::kUnknownValue);
  wire::SolvePlanRequest request = Looking(wire::SOLVE_GOAL_RANKS);
  request.set_device("h999");
  EXPECT_EQ(error_of(request).field, "device");
  request = Looking(wire::SOLVE_GOAL_RANKS);
  request.set_rank_count_max(2000);
  EXPECT_EQ(error_of(request).field, "rank_count_max");
  request = Looking(wire::SOLVE_GOAL_CONTEXT);
  request.mutable_options()->set_ruleset("vllm-2026-11");
  EXPECT_EQ(error_of(request).field, "options.ruleset");
  request = Looking(wire::SOLVE_GOAL_CONTEXT);
  request.mutable_options()->clear_kv_memory_bytes();
  EXPECT_EQ(error_of(request).field, "options.kv_memory_bytes");
  request = Looking(wire::SOLVE_GOAL_CONTEXT);
  request.mutable_target()->mutable_layers();
  EXPECT_EQ(error_of(request).field, "target.layers");
}

TEST_F(PlannerQuestionsTest, AGridComesInOrderWithItsFront) {
  const Swept swept = Sweep(Grid());
  KVASIR_ASSERT_OK(swept.status);
  ASSERT_EQ(swept.points.size(), 3U);  // dcp 2 is no point of tp 1
  EXPECT_EQ(swept.points[0].options().topology().tp(), 1);
  EXPECT_EQ(swept.points[2].options().topology().dcp(), 2);
  EXPECT_EQ(swept.last.done_count(), 3);
  EXPECT_EQ(swept.last.point_count(), 3);
  EXPECT_GT(swept.last.front_size(), 0);
  for (const wire::SweepPoint& point : swept.points) {
    if (point.verdict() != "fits") continue;
    wire::CreatePlanRequest again = GoodPlanRequest();
    *again.mutable_options() = point.options();
    wire::CreatePlanResponse plan;
    KVASIR_ASSERT_OK(Call(&wire::PlannerService::Stub::CreatePlan, again, plan));
    EXPECT_EQ(plan.plan().plan_id(), point.plan_id());
  }
}

TEST_F(PlannerQuestionsTest, SweepSaysWhatIsWrong) {
  wire::SweepPlansRequest request = Grid();
  request.clear_axes();
  EXPECT_EQ(ErrorOf(Sweep(request).status).field, "axes");
  request = Grid();
  request.mutable_axes()->add_tps(0);
  EXPECT_EQ(ErrorOf(Sweep(request).status).field, "axes.tps[2]");
  request = Grid();
  request.mutable_axes()->add_tps(2);
  EXPECT_EQ(ErrorOf(Sweep(request).status).reason, reason::kDuplicateItem);
  request = Grid();
  request.mutable_axes()->add_devices("h999");
  EXPECT_EQ(ErrorOf(Sweep(request).status).field, "axes.devices[0]");
  request = Grid();
  for (int i = 0; i < 65; ++i) request.mutable_axes()->add_context_tokens(1024 + i);
  EXPECT_EQ(ErrorOf(Sweep(request).status).reason, reason::kTooManyItems);
  request = Grid();
  for (int i = 1; i < 60; ++i) {
    request.mutable_axes()->add_context_tokens(1024 + i);
    request.mutable_axes()->add_kv_memory_bytes((16 << 20) + i);
  }
  EXPECT_EQ(ErrorOf(Sweep(request).status).reason, reason::kValueOutOfRange);
}

TEST(SweepAnswerTest, EndsWhenItIsTold) {
  int asked = 0;
  int points = 0;
  KVASIR_ASSERT_OK(AnswerSweepPlans(
      Grid(), [&asked] { return ++asked < 2; },
      [&points](const wire::SweepPlansResponse& part) { points += part.points_size(); }));
  EXPECT_EQ(points, 2);
}

// A client that leaves frees the thread: more such calls than threads, and the next is still answered.
TEST_F(PlannerQuestionsTest, ASweepEndsWithItsCall) {
  wire::SweepPlansRequest request = Grid();
  for (int i = 1; i <= 50; ++i) request.mutable_axes()->add_context_tokens(1024 + i);
  for (int i = 1; i <= 50; ++i) request.mutable_axes()->add_kv_memory_bytes((16 << 20) + 4096 * i);
  for (int i = 0; i < 16; ++i) {
    grpc::ClientContext context;
    SetTimeout(context, std::chrono::seconds(60));
    const auto reader = rig_.stub().SweepPlans(&context, request);
    wire::SweepPlansResponse part;
    ASSERT_TRUE(reader->Read(&part));
    context.TryCancel();
    (void)reader->Finish();
  }
  wire::SolvePlanResponse response;
  KVASIR_EXPECT_OK(
      Call(&wire::PlannerService::Stub::SolvePlan, Looking(wire::SOLVE_GOAL_REQUESTS), response));
}

// More sweeps than threads, and a plan is answered before any third of them is done.
TEST_F(PlannerQuestionsTest, APlanDoesNotWaitForSweeps) {
  wire::SweepPlansRequest request = Grid();
  for (int i = 1; i <= 50; ++i) request.mutable_axes()->add_context_tokens(1024 + i);
  for (int i = 1; i <= 50; ++i) request.mutable_axes()->add_kv_memory_bytes((16 << 20) + 4096 * i);
  std::array<grpc::ClientContext, 6> contexts;
  std::atomic<int> ended = 0;
  std::vector<std::thread> clients;
  for (grpc::ClientContext& context : contexts) {
    SetTimeout(context, std::chrono::seconds(60));
    const std::shared_ptr reader = rig_.stub().SweepPlans(&context, request);
    wire::SweepPlansResponse part;
    if (clients.empty()) {
      EXPECT_TRUE(reader->Read(&part));  // the first has begun
    }
    clients.emplace_back([reader, &ended] {
      wire::SweepPlansResponse rest;
      while (reader->Read(&rest)) {
      }
      ++ended;
    });
  }
  wire::CreatePlanResponse response;
  KVASIR_EXPECT_OK(Call(&wire::PlannerService::Stub::CreatePlan, GoodPlanRequest(), response));
  EXPECT_LT(ended, 3);
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace kvasir
