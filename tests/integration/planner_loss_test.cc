// The planner dies: what waits for it is freed by its lease, what serves goes on serving. Slow, since the
// shortest lease that a planner asks for is 5 s.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/integration/two_process.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::ApplyOutcome;
using testing::BecomesEmpty;
using testing::DecodePrompts;
using testing::Prompts;
using testing::StartPlanner;
using testing::StreamOutcome;
using testing::TwoProcessTest;
using testing::WorkerServer;

TEST_F(TwoProcessTest, ThePlannerKilledBetweenPrepareAndCommit) {
  // The worker that is committed first never answers: the planner is caught with both prepared and none
  // committed.
  StartAll({}, {"--fault-point=commit.start=hang"});
  plan_.mutable_commit_timeout()->set_seconds(0);
  plan_.mutable_commit_timeout()->set_nanos(500'000'000);
  std::thread killer([this] {
    for (WorkerServer* worker : {&leader_, &follower_}) {
      const auto prepared = worker->process->WaitForText("event=prepare_end");
      EXPECT_TRUE(prepared.ok()) << prepared.status();
    }
    planner_.process->Signal(SIGKILL);
  });
  const ApplyOutcome applied = ApplyToBoth();
  killer.join();
  EXPECT_EQ(applied.status.code(), absl::StatusCode::kUnavailable) << applied.status;
  // Nobody renews the leases any more (5 s and four commit deadlines).
  EXPECT_TRUE(BecomesEmpty(leader_, seconds(40))) << Logs();
  EXPECT_TRUE(BecomesEmpty(follower_, seconds(40))) << Logs();
  (void)planner_.process->WaitForExit();
  planner_ = StartPlanner(state_.path());
  // What the planner finds in its store, it finishes or retires; until then another apply is told so.
  ApplyOutcome again = ApplyToBoth();
  const auto deadline = steady_clock::now() + seconds(60);
  while (ErrorOf(again.status).reason == reason::kApplyInProgress && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    again = ApplyToBoth();
  }
  KVASIR_EXPECT_OK(again.status);
  const StreamOutcome decoded = DecodePrompts(*leader_.stub, Prompts(), 8, true);
  EXPECT_EQ(decoded.finished.size(), Prompts().size()) << Logs();
}

TEST_F(TwoProcessTest, ARunningPlanServesOnWhenThePlannerDies) {
  StartAll();
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  planner_.process->Signal(SIGKILL);
  (void)planner_.process->WaitForExit();
  const StreamOutcome decoded = DecodePrompts(*leader_.stub, Prompts(), 8, true);
  KVASIR_EXPECT_OK(decoded.status);
  EXPECT_EQ(decoded.finished.size(), Prompts().size());
}

}  // namespace
}  // namespace kvasir
