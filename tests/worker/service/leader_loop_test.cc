// Rank 0's loop: requests that run, end, are cancelled, and what becomes of them when ranks or clients fail.
#include "worker/service/leader_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"
#include "tests/worker/service/leader_loop_rig.h"

namespace kvasir {
namespace {

using testing::Answer;
using testing::FakeSink;
using testing::FinishIn;
using testing::Gate;
using testing::kKey;
using testing::kLong;
using testing::Nan;
using testing::Request;
using testing::Rig;
using testing::StatusIn;
using testing::StatusIs;
using testing::Unreachable;

TEST(LeaderLoopTest, RunsRequestsToTheirLength) {
  const auto loop = Rig().Start();
  const auto sink = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(5), sink));
  const RequestFinished finished = FinishIn(sink->WaitForEnd(1));
  EXPECT_EQ(finished.reason, EndReason::kLength);
  EXPECT_EQ(finished.emitted, 5);
  EXPECT_EQ(finished.target_steps, 4) << "the prefill emits the first token";
  EXPECT_EQ(sink->tokens(1), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
}

TEST(LeaderLoopTest, StopsAtAStopToken) {
  const auto loop = Rig().Start();
  const auto sink = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(50, {3}), sink));
  EXPECT_EQ(FinishIn(sink->WaitForEnd(1)).reason, EndReason::kStopToken);
  EXPECT_EQ(sink->tokens(1).back(), 3);
}

TEST(LeaderLoopTest, RefusesWhatTheSchedulerRefusesAndGoesOn) {
  const auto loop = Rig().Start();
  const auto sink = std::make_shared<FakeSink>();
  SequenceRequest bad = Request(5);
  bad.prompt = {testing::kSmallVocab};
  EXPECT_THAT(loop->Join(1, bad, sink), StatusIs(absl::StatusCode::kInvalidArgument, "token 96"));
  KVASIR_ASSERT_OK(loop->Join(2, Request(5), sink));
  EXPECT_EQ(FinishIn(sink->WaitForEnd(2)).emitted, 5);
}

TEST(LeaderLoopTest, RefusesSpeculationWithoutADraft) {
  const auto loop = Rig().Start();
  SequenceRequest request = Request(5);
  request.speculate = true;
  const absl::Status status = loop->Join(1, request, std::make_shared<FakeSink>());
  EXPECT_EQ(ErrorOf(status).reason, reason::kConflictingFields);
  EXPECT_EQ(ErrorOf(status).field, "speculate");
}

TEST(LeaderLoopTest, CancelEndsOneRequestAndDropAClientsOthers) {
  Gate gate;
  Rig rig;
  rig.execute = [&gate](const StepPlan& step) {
    gate.Pass();
    return Answer(step);
  };
  const auto loop = rig.Start();
  const auto kept = std::make_shared<FakeSink>();
  const auto gone = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(80), kept));
  KVASIR_ASSERT_OK(loop->Join(2, Request(10), kept));
  KVASIR_ASSERT_OK(loop->Join(1, Request(80), gone));
  gate.WaitForOne();
  loop->Cancel(1, kept);
  loop->Cancel(77, kept);  // unknown: ignored
  loop->Drop(gone);
  gate.Open();
  EXPECT_EQ(FinishIn(kept->WaitForEnd(1)).reason, EndReason::kCancelled);
  EXPECT_EQ(FinishIn(kept->WaitForEnd(2)).emitted, 10);
  EXPECT_TRUE(gone->tokens(1).size() <= 1);
}

TEST(LeaderLoopTest, AClientThatDoesNotReadIsDroppedAndHoldsNobodyUp) {
  const auto loop = Rig().Start();
  const auto slow = std::make_shared<FakeSink>(/*capacity=*/2);
  const auto quick = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(90), slow));
  KVASIR_ASSERT_OK(loop->Join(1, Request(90), quick));
  EXPECT_EQ(FinishIn(quick->WaitForEnd(1)).emitted, 90);
  EXPECT_LE(slow->tokens(1).size(), 1U);
}

TEST(LeaderLoopTest, NaNEndsTheStepsRequestsOnly) {
  int calls = 0;
  Rig rig;
  rig.execute = [&calls](const StepPlan& step) -> absl::StatusOr<StepOutcome> {
    if (calls++ == 0) return Nan();
    return Answer(step);
  };
  int peer_calls = 0;
  rig.peer = [&peer_calls](const StepPlan& step) -> absl::StatusOr<StepOutcome> {
    if (peer_calls++ == 0) return Nan();
    return Answer(step);
  };
  const auto loop = rig.Start();
  const auto sink = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(5), sink));
  EXPECT_EQ(ErrorOf(StatusIn(sink->WaitForEnd(1))).reason, reason::kNotANumber);
  KVASIR_ASSERT_OK(loop->Join(2, Request(5), sink));
  EXPECT_EQ(FinishIn(sink->WaitForEnd(2)).emitted, 5);
  KVASIR_EXPECT_OK(sink->failure());
}

TEST(LeaderLoopTest, ALostPeerEndsAllRequestsAndStreamsAndIsReported) {
  std::mutex mutex;
  absl::Status reported;
  Gate gate;  // until both have joined
  Rig rig;
  rig.execute = [&gate](const StepPlan& step) {
    gate.Pass();
    return Answer(step);
  };
  rig.peer = [](const StepPlan& step) -> absl::StatusOr<StepOutcome> {
    if (step.step == 3) return Unreachable();
    return Answer(step);
  };
  rig.on_failed = [&](const absl::Status& cause) {
    const std::lock_guard lock(mutex);
    reported = cause;
  };
  const auto loop = rig.Start();
  const auto first = std::make_shared<FakeSink>();
  const auto second = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(80), first));
  KVASIR_ASSERT_OK(loop->Join(1, Request(80), second));
  gate.Open();
  for (const auto& sink : {first, second}) {
    const TypedError error = ErrorOf(StatusIn(sink->WaitForEnd(1)));
    EXPECT_EQ(error.reason, reason::kRankLost);
    EXPECT_EQ(error.metadata.at("worker"), "node-b:1");
    EXPECT_EQ(ErrorOf(sink->WaitForFailure()).reason, reason::kRankLost);
  }
  const absl::Status later = loop->Join(2, Request(5), first);
  EXPECT_EQ(ErrorOf(later).reason, reason::kRankLost);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(ErrorOf(reported).reason, reason::kRankLost);
}

TEST(LeaderLoopTest, DrainRefusesNewRequestsAndReportsTheLastEnd) {
  Gate gate;
  std::mutex mutex;
  std::condition_variable changed;
  bool drained = false;
  Rig rig;
  rig.execute = [&gate](const StepPlan& step) {
    gate.Pass();
    return Answer(step);
  };
  rig.on_drained = [&] {
    const std::lock_guard lock(mutex);
    drained = true;
    changed.notify_all();
  };
  const auto loop = rig.Start();
  const auto sink = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(5), sink));
  gate.WaitForOne();
  loop->Drain();
  EXPECT_EQ(ErrorOf(loop->Join(2, Request(5), sink)).reason, reason::kPlanRetired);
  {
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(drained) << "a request still runs";
  }
  gate.Open();
  EXPECT_EQ(FinishIn(sink->WaitForEnd(1)).emitted, 5) << "a running request goes on to its end";
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, kLong, [&] { return drained; }));
}

TEST(LeaderLoopTest, StopEndsRequestsWithItsCause) {
  Gate gate;
  gate.Open();
  const auto loop = Rig().Start();
  const auto sink = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(90), sink));
  ASSERT_TRUE(sink->WaitForTokens());
  loop->Stop(PlanRetired(kKey, "test"), /*fail_streams=*/false);
  const DecodeEvent end = sink->WaitForEnd(1);
  // It may have finished just before.
  if (const absl::Status status = StatusIn(end); !status.ok()) {
    EXPECT_EQ(ErrorOf(status).reason, reason::kPlanRetired);
  }
  KVASIR_EXPECT_OK(sink->failure());
  EXPECT_EQ(ErrorOf(loop->Join(2, Request(5), sink)).reason, reason::kPlanRetired);
}

}  // namespace
}  // namespace kvasir
