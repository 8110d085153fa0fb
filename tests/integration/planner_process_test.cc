// The planner as a process: killed at the worst moments, replaced, drained, started wrongly. The workers are
// real too.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_codec.h"
#include "tests/integration/cluster.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

namespace wire = ::kvasir::planner::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Apply;
using testing::ApplyOutcome;
using testing::BecomesEmpty;
using testing::DecodePrompts;
using testing::PlanDemoPair;
using testing::PlannerServer;
using testing::StartPlanner;
using testing::StartServer;
using testing::StartWorker;
using testing::StreamOutcome;
using testing::TempDir;
using testing::WorkerServer;

class PlannerProcessTest : public ::testing::Test {
 protected:
  void StartAll(const std::vector<std::string>& follower_flags = {}) {
    planner_ = StartPlanner(state_.path());
    leader_ = StartWorker();
    follower_ = StartWorker(follower_flags);
    auto planned = PlanDemoPair(*planner_.stub);
    ASSERT_TRUE(planned.ok()) << planned.status();
    plan_ = *std::move(planned);
  }

  ApplyOutcome ApplyToBoth() { return Apply(*planner_.stub, plan_, {leader_.address, follower_.address}); }

  // Kills the planner as soon as its output has `text`, which happens during an apply.
  void KillPlannerAt(const std::string& text) {
    std::thread killer([this, text] {
      const auto seen = planner_.process->WaitForText(text);
      EXPECT_TRUE(seen.ok()) << seen.status();
      planner_.process->Signal(SIGKILL);
    });
    const ApplyOutcome cut = ApplyToBoth();
    killer.join();
    EXPECT_EQ(cut.status.code(), absl::StatusCode::kUnavailable) << cut.status;
    planner_.process->WaitForExit();
  }

  absl::StatusOr<wire::Deployment> Get() {
    wire::GetDeploymentRequest request;
    request.set_deployment("demo");
    wire::GetDeploymentResponse response;
    grpc::ClientContext context;
    SetTimeout(context, seconds(20));
    absl::Status status = FromGrpcStatus(planner_.stub->GetDeployment(&context, request, &response));
    if (!status.ok()) return status;
    return response.deployment();
  }

  // Polls until the planner has finished what it took up.
  wire::Deployment Settled() {
    for (int i = 0; i < 300; ++i) {
      const auto deployment = Get();
      EXPECT_TRUE(deployment.ok()) << deployment.status();
      if (!deployment.ok()) break;
      const bool resting = deployment->state() == wire::DEPLOYMENT_STATE_ACTIVE ||
                           deployment->state() == wire::DEPLOYMENT_STATE_FAILED;
      if (resting && deployment->pending_epoch() == 0) return *deployment;
      std::this_thread::sleep_for(milliseconds(100));
    }
    ADD_FAILURE() << "the planner does not come to rest\n" << planner_.process->output();
    return {};
  }

  void ExpectDecode() {
    const StreamOutcome decoded = DecodePrompts(*leader_.stub, {{1, 2, 3}, {7, 8}}, 8, true);
    KVASIR_EXPECT_OK(decoded.status);
    EXPECT_EQ(decoded.finished.size(), 2U) << Logs();
  }

  [[nodiscard]] std::string Logs() const {
    return "\nplanner:\n" + planner_.process->output() + "\nleader:\n" + leader_.process->output() +
           "\nfollower:\n" + follower_.process->output();
  }

  TempDir state_;
  PlannerServer planner_;
  WorkerServer leader_;
  WorkerServer follower_;
  wire::ApplyPlanRequest plan_;
};

TEST_F(PlannerProcessTest, KilledWhileWorkersPrepareItAbortsWhenItIsBack) {
  StartAll({"--fault-point=prepare.agreed=hang"});
  KillPlannerAt("phase=preparing");
  planner_ = StartPlanner(state_.path());
  const wire::Deployment deployment = Settled();
  EXPECT_EQ(deployment.state(), wire::DEPLOYMENT_STATE_FAILED);
  EXPECT_EQ(deployment.last_error().reason(), reason::kPlannerRestarted) << deployment.DebugString();
  EXPECT_TRUE(BecomesEmpty(leader_, seconds(40))) << Logs();
  follower_ = StartWorker();  // the hung one would never answer
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  ExpectDecode();
}

TEST_F(PlannerProcessTest, KilledBetweenPrepareAndCommitItRollsForward) {
  // The follower's first commit hangs: COMMITTING is stored, nothing is committed.
  StartAll({"--fault-point=commit.start=hang"});
  KillPlannerAt("phase=committing");
  planner_ = StartPlanner(state_.path());
  const wire::Deployment deployment = Settled();
  EXPECT_EQ(deployment.state(), wire::DEPLOYMENT_STATE_ACTIVE) << deployment.DebugString() << Logs();
  EXPECT_EQ(deployment.epoch(), 1);
  EXPECT_EQ(deployment.plan_id(), plan_.plan_id());
  ExpectDecode();
}

TEST_F(PlannerProcessTest, RememberedDeploymentsOutliveThePlanner) {
  StartAll();
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  planner_.process->Signal(SIGKILL);
  planner_.process->WaitForExit();
  ExpectDecode();  // workers need no planner to serve
  planner_ = StartPlanner(state_.path());
  EXPECT_EQ(Settled().state(), wire::DEPLOYMENT_STATE_ACTIVE);
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  EXPECT_EQ(Settled().epoch(), 2);
  ExpectDecode();
}

TEST_F(PlannerProcessTest, ReplaceMakesRoomWhereSideBySideDoesNotFit) {
  StartAll();
  // Workers have 64 MiB per rank: two such arenas do not fit beside each other.
  wire::CreatePlanRequest request;
  request.mutable_target()->set_catalogue_name("demo-target");
  request.mutable_draft()->set_catalogue_name("demo-dspark");
  request.mutable_options()->mutable_topology()->set_tp(2);
  request.mutable_options()->mutable_topology()->set_dcp(2);
  request.mutable_options()->add_kv_memory_bytes(std::int64_t{36} << 20);
  request.mutable_options()->add_context_tokens(512);
  wire::CreatePlanResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(planner_.stub->CreatePlan(&context, request, &response).ok());
  plan_.set_plan_text(response.plan().canonical_text());
  plan_.set_plan_id(response.plan().plan_id());
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  const TypedError refused = ErrorOf(ApplyToBoth().status);
  EXPECT_EQ(refused.reason, reason::kOutOfMemory) << refused.message;
  EXPECT_GT(std::stoll(refused.metadata.at("shortfall_bytes")), 0);
  EXPECT_EQ(Settled().epoch(), 1) << "the old plan serves on";
  ExpectDecode();
  plan_.set_mode(wire::DEPLOYMENT_MODE_REPLACE);
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  EXPECT_GT(Settled().epoch(), 1);
  ExpectDecode();
}

TEST_F(PlannerProcessTest, DeleteFreesEverything) {
  StartAll();
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  wire::DeleteDeploymentRequest request;
  request.set_deployment("demo");
  request.mutable_drain_timeout();
  wire::DeleteDeploymentResponse response;
  grpc::ClientContext context;
  KVASIR_ASSERT_OK(FromGrpcStatus(planner_.stub->DeleteDeployment(&context, request, &response)));
  EXPECT_EQ(response.unreachable_workers_size(), 0);
  EXPECT_TRUE(BecomesEmpty(leader_, seconds(10))) << Logs();
  EXPECT_TRUE(BecomesEmpty(follower_, seconds(10))) << Logs();
  EXPECT_EQ(ReasonOf(Get().status()), reason::kDeploymentUnknown);
}

TEST_F(PlannerProcessTest, SigtermTurnsNotServingBeforeItEnds) {
  testing::Server server =
      StartServer("kvasir-planner", {"--state-dir=" + state_.path(), "--grace-seconds=1"});
  KVASIR_EXPECT_OK(CheckHealth(server.channel, "kvasir.planner.v1.PlannerService", seconds(10)));
  server.process->Signal(SIGTERM);
  const auto stopping = server.process->WaitForText("event=stopping");
  EXPECT_TRUE(stopping.ok()) << stopping.status();
  // During the grace the process answers and says that it is not ready.
  absl::Status health = absl::OkStatus();
  for (int i = 0; i < 50 && health.ok(); ++i) {
    health = CheckHealth(server.channel, "kvasir.planner.v1.PlannerService", seconds(10));
  }
  EXPECT_THAT(health, testing::StatusIs(absl::StatusCode::kUnavailable, "not serving"));
  server.channel.reset();  // an open connection that nobody reads from would hold up the end
  EXPECT_EQ(server.process->WaitForExit(), 0) << server.process->output();
}

TEST_F(PlannerProcessTest, EveryWrongStartHasItsExitCode) {
  const std::string binary = testing::BinaryPath("kvasir-planner");
  const std::string state = "--state-dir=" + state_.path();
  EXPECT_EQ(testing::RunToEnd({binary, "--port=1"}).exit_code, 2);
  EXPECT_EQ(testing::RunToEnd({binary, "--help"}).exit_code, 0);
  EXPECT_EQ(testing::RunToEnd({binary, state, "--listen=nonsense"}).exit_code, 4);
  const testing::Finished exposed = testing::RunToEnd({binary, state, "--listen=0.0.0.0:0"});
  EXPECT_EQ(exposed.exit_code, 4);
  EXPECT_THAT(exposed.output, ::testing::HasSubstr("--insecure"));
  const PlannerServer first = StartPlanner(state_.path());
  const testing::Finished second = testing::RunToEnd({binary, state, "--listen=127.0.0.1:0"});
  EXPECT_EQ(second.exit_code, 4);
  EXPECT_THAT(second.output, ::testing::HasSubstr("another planner"));
  const TempDir other;
  const testing::Finished taken =
      testing::RunToEnd({binary, "--state-dir=" + other.path(), "--listen=" + first.address});
  EXPECT_EQ(taken.exit_code, 4);
  EXPECT_THAT(taken.output, ::testing::HasSubstr("taken"));
  std::filesystem::create_directories(other.path());
  std::ofstream(other.path() + "/x.deployment") << "damaged";
  const testing::Finished corrupt =
      testing::RunToEnd({binary, "--state-dir=" + other.path(), "--listen=127.0.0.1:0"});
  EXPECT_EQ(corrupt.exit_code, 4);
  EXPECT_THAT(corrupt.output, ::testing::HasSubstr("x.deployment"));
}

}  // namespace
}  // namespace kvasir
