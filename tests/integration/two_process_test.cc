// The main path and its worst moments, with real processes: apply over two workers, decode, and SIGKILL
// whoever it may be. Every failure is a typed error within its deadline, nobody keeps memory for a dead plan,
// and the next apply succeeds.
#include "tests/integration/two_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_codec.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::ApplyOutcome;
using testing::BecomesEmpty;
using testing::Bytes;
using testing::DecodePrompts;
using testing::Prompts;
using testing::StartWorker;
using testing::StreamOutcome;
using testing::TwoProcessTest;

constexpr std::int64_t kTokens = 40;

TEST_F(TwoProcessTest, SpeculationIsLosslessOverTwoProcesses) {
  StartAll();
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  const StreamOutcome plain = DecodePrompts(*leader_.stub, Prompts(), kTokens, false);
  // Twice at once: batches differ from the plain run's, tokens must not.
  StreamOutcome first;
  StreamOutcome second;
  std::thread one([&] { first = DecodePrompts(*leader_.stub, Prompts(), kTokens, true); });
  std::thread two([&] { second = DecodePrompts(*leader_.stub, Prompts(), kTokens, true); });
  one.join();
  two.join();
  KVASIR_EXPECT_OK(plain.status);
  KVASIR_EXPECT_OK(first.status);
  KVASIR_EXPECT_OK(second.status);
  ASSERT_EQ(plain.finished.size(), Prompts().size());
  EXPECT_EQ(first.tokens, plain.tokens);
  EXPECT_EQ(second.tokens, plain.tokens);
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  for (const auto& [tag, finish] : first.finished) {
    drafted += finish.drafted_tokens();
    accepted += finish.accepted_tokens();
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, drafted);
}

TEST_F(TwoProcessTest, ADisagreementOfFactsIsNamedAndNothingIsAllocated) {
  StartAll({}, {"--fact=library.nccl=2.27.3"});
  const auto start = steady_clock::now();
  const ApplyOutcome applied = ApplyToBoth();
  EXPECT_LT(steady_clock::now() - start, seconds(20));
  const TypedError error = ErrorOf(applied.status);
  EXPECT_EQ(error.code, absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(error.reason, reason::kRanksDisagree) << applied.status;
  EXPECT_NE(error.message.find("library.nccl"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("2.27.3"), std::string::npos) << error.message;
  EXPECT_TRUE(BecomesEmpty(leader_, seconds(5)));
  EXPECT_TRUE(BecomesEmpty(follower_, seconds(5)));
  follower_ = StartWorker();
  ExpectApplyAndDecodeSucceed();
}

TEST_F(TwoProcessTest, AWorkerKilledDuringPrepare) {
  StartAll({}, {"--fault-point=prepare.agreed=hang"});
  std::thread killer([this] {
    const auto started =
        leader_.process->WaitForText("event=prepare_end");  // it does not wait for the other one
    EXPECT_TRUE(started.ok()) << started.status();
    follower_.process->Signal(SIGKILL);
  });
  const auto start = steady_clock::now();
  const ApplyOutcome applied = ApplyToBoth();
  killer.join();
  EXPECT_LT(steady_clock::now() - start, seconds(60));
  EXPECT_EQ(ErrorOf(applied.status).code, absl::StatusCode::kUnavailable) << applied.status;
  EXPECT_NE(ErrorOf(applied.status).reason, "UNAVAILABLE") << "the error has a reason of ours";
  EXPECT_TRUE(BecomesEmpty(leader_, seconds(30))) << Logs();
  follower_ = StartWorker();
  ExpectApplyAndDecodeSucceed();
}

TEST_F(TwoProcessTest, AFollowerKilledDuringDecode) {
  StartAll();
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  std::thread killer([this] {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(150));  // most likely in the middle; any moment must do
    follower_.process->Signal(SIGKILL);
  });
  const auto start = steady_clock::now();
  const StreamOutcome decoded = DecodePrompts(*leader_.stub, Prompts(), 400, true);
  killer.join();
  EXPECT_LT(steady_clock::now() - start, seconds(30));
  EXPECT_EQ(ErrorOf(decoded.status).reason, reason::kRankLost) << decoded.status;
  EXPECT_EQ(decoded.finished.size() + decoded.errors.size(), Prompts().size())
      << "each request has its own end";
  for (const auto& [tag, error] : decoded.errors) EXPECT_EQ(error.reason(), reason::kRankLost);
  EXPECT_TRUE(BecomesEmpty(leader_, seconds(10))) << Logs();
  const StreamOutcome refused = DecodePrompts(*leader_.stub, {Bytes("x")}, 4, true);
  EXPECT_EQ(refused.errors.at(1).reason(), reason::kNotRunning);
  follower_ = StartWorker();
  ExpectApplyAndDecodeSucceed();
}

TEST_F(TwoProcessTest, TheLeaderKilledDuringDecode) {
  StartAll();
  KVASIR_ASSERT_OK(ApplyToBoth().status);
  std::thread killer([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    leader_.process->Signal(SIGKILL);
  });
  const StreamOutcome decoded = DecodePrompts(*leader_.stub, Prompts(), 400, true);
  killer.join();
  EXPECT_EQ(decoded.status.code(), absl::StatusCode::kUnavailable) << decoded.status;
  EXPECT_TRUE(BecomesEmpty(follower_, seconds(10))) << Logs();
  leader_ = StartWorker();
  ExpectApplyAndDecodeSucceed();
}

TEST_F(TwoProcessTest, PreflightMeasuresEverythingAndLeavesNothing) {
  StartAll();
  plan_.mutable_preflight()->set_replays_per_graph(1);
  const ApplyOutcome preflight = ApplyToBoth();
  KVASIR_ASSERT_OK(preflight.status);
  std::set<std::string> measured;
  for (const planner::v1::ApplyPlanResponse& event : preflight.events) {
    if (!event.has_prepared()) continue;
    measured.insert(event.prepared().worker_address());
    EXPECT_GT(event.prepared().graph_timings_size(), 0);
    for (const auto& compared : event.prepared().comparisons()) EXPECT_TRUE(compared.replay_equals_eager());
    for (const auto& rank : event.prepared().measurements()) {
      EXPECT_EQ(rank.arena_bytes(), rank.planned_arena_bytes());
    }
  }
  EXPECT_EQ(measured, (std::set<std::string>{leader_.address, follower_.address}));
  EXPECT_TRUE(BecomesEmpty(leader_, seconds(10)));
  EXPECT_TRUE(BecomesEmpty(follower_, seconds(10)));
}

}  // namespace
}  // namespace kvasir
