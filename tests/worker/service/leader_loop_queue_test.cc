// Requests that wait for room at rank 0's loop, their timeouts, and the times that it tells.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"
#include "tests/worker/service/leader_loop_rig.h"

namespace kvasir {
namespace {

using std::chrono::milliseconds;
using testing::FakeSink;
using testing::FinishIn;
using testing::Request;
using testing::SlowRig;
using testing::StatusIn;
using testing::StatusIs;

TEST(LeaderLoopTest, CountsStepsAndTheirTimes) {
  SlowRig slow(4);
  slow.gate.Open();
  const auto loop = slow.rig.Start();
  const auto sink = std::make_shared<FakeSink>();
  SequenceRequest request = Request(5);
  request.prompt.assign(20, 1);  // chunks of 8
  KVASIR_ASSERT_OK(loop->Join(1, request, sink));
  const RequestFinished finished = FinishIn(sink->WaitForEnd(1));
  EXPECT_EQ(finished.prefill_steps, 3);
  EXPECT_EQ(finished.prefill_time, milliseconds(30));
  EXPECT_EQ(finished.target_steps, 4);
  EXPECT_EQ(finished.target_time, milliseconds(40));
  EXPECT_EQ(finished.target_time_max, milliseconds(10));
  EXPECT_EQ(finished.emitted, 1 + finished.accepted + finished.target_steps);
}

// Steps of 100 ns and 10 a row, on a clock that says so: all rows, none, then the cost itself.
TEST(LeaderLoopTest, LearnsWhatRowsCostAndTellsEveryRank) {
  std::mutex mutex;
  std::vector<StepCost> costs;
  std::atomic<std::int64_t> time = 0;
  testing::Rig rig;
  rig.draft_tokens = 3;
  rig.adaptive_verification = true;
  rig.now = [&] { return std::chrono::nanoseconds(time.load()); };
  const auto answer = [&](const StepPlan& step) {
    StepOutcome outcome{.step = step.step};
    for (const StepSequence& sequence : step.sequences) {
      SequenceOutcome& its = outcome.sequences.emplace_back();
      its.id = sequence.id;
      its.drafted = step.kind == StepKind::kSpeculate && step.cost.fixed > 0
                        ? std::min<std::int64_t>(3, sequence.limit - 1 - sequence.committed)
                        : 0;
      its.emitted = {7};
    }
    return outcome;
  };
  rig.execute = [&](const StepPlan& step) {
    const StepOutcome outcome = answer(step);
    if (step.kind == StepKind::kSpeculate) {
      const std::lock_guard lock(mutex);
      costs.push_back(step.cost);
      time += 100 + 10 * (1 + outcome.sequences[0].drafted);
    }
    return outcome;
  };
  rig.peer = answer;
  const auto loop = rig.Start();
  const auto sink = std::make_shared<FakeSink>();
  SequenceRequest request = Request(6);
  request.speculate = true;
  KVASIR_ASSERT_OK(loop->Join(1, request, sink));
  EXPECT_EQ(FinishIn(sink->WaitForEnd(1)).emitted, 6);
  const std::lock_guard lock(mutex);
  ASSERT_EQ(costs.size(), 5U);
  EXPECT_EQ(costs[0], StepCost{});
  EXPECT_EQ(costs[1], (StepCost{.fixed = 0, .row = 1}));
  EXPECT_EQ(costs[2], (StepCost{.fixed = 100, .row = 10}));
}

// Short requests between long ones leave holes; whoever waits for blocks has parents emptied, on every rank.
TEST(LeaderLoopTest, AParentIsEmptiedForWhoeverWaits) {
  SlowRig slow(16);
  slow.rig.parents = 6;  // 15 blocks of 4 tokens
  std::atomic<int> moves = 0;
  std::atomic<int> peer_moves = 0;
  slow.rig.execute = [&](const StepPlan& step) {
    slow.gate.Pass();
    moves += step.move.has_value() ? 1 : 0;
    return testing::Answer(step);
  };
  slow.rig.peer = [&](const StepPlan& step) {
    peer_moves += step.move.has_value() ? 1 : 0;
    return testing::Answer(step);
  };
  const auto sink = std::make_shared<FakeSink>();
  const auto loop = slow.StartBusy(sink);
  constexpr std::int64_t kLast = 40;
  for (std::int64_t tag = 2; tag <= kLast; ++tag) {
    KVASIR_ASSERT_OK(loop->Join(tag, Request(tag % 3 == 0 ? 25 : 1 + tag % 5), sink, {.wait = true}));
  }
  slow.gate.Open();
  for (std::int64_t tag = 2; tag <= kLast; ++tag) {
    EXPECT_EQ(FinishIn(sink->WaitForEnd(tag)).emitted, tag % 3 == 0 ? 25 : 1 + tag % 5);
  }
  EXPECT_GT(moves, 0);
  EXPECT_EQ(moves, peer_moves);
}

TEST(LeaderLoopTest, ThoseWhoWaitAreAdmittedInOrderAndNobodyOvertakesThem) {
  SlowRig slow(1);
  const auto sink = std::make_shared<FakeSink>();
  const auto loop = slow.StartBusy(sink);
  KVASIR_ASSERT_OK(loop->Join(2, Request(5), sink, {.wait = true}));
  KVASIR_ASSERT_OK(loop->Join(3, Request(5), sink, {.wait = true}));
  KVASIR_ASSERT_OK(loop->Join(4, Request(5), sink));
  slow.gate.Open();
  EXPECT_EQ(FinishIn(sink->WaitForEnd(1)).queue_time, milliseconds(0));
  const absl::Status refused = StatusIn(sink->WaitForEnd(4));
  EXPECT_EQ(ErrorOf(refused).reason, reason::kTooManyRequests);
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kResourceExhausted, "2 requests wait for room before this"));
  // Five steps each.
  EXPECT_EQ(FinishIn(sink->WaitForEnd(2)).queue_time, milliseconds(50));
  EXPECT_EQ(FinishIn(sink->WaitForEnd(3)).queue_time, milliseconds(100));
}

TEST(LeaderLoopTest, ARequestThatCouldNeverRunIsRefusedAtOnceAndTakesNoRoomInTheQueue) {
  SlowRig slow(1);
  slow.rig.waiting_max = 1;
  const auto sink = std::make_shared<FakeSink>();
  const auto loop = slow.StartBusy(sink);
  SequenceRequest never = Request(5);
  never.prompt = {-1};
  EXPECT_THAT(loop->Join(2, never, sink, {.wait = true}),
              StatusIs(absl::StatusCode::kInvalidArgument, "token -1"));
  const absl::Status beyond = loop->Join(3, Request(1'000'000), sink, {.wait = true});
  EXPECT_EQ(ErrorOf(beyond).reason, reason::kValueOutOfRange) << beyond;
  EXPECT_EQ(ErrorOf(beyond).field, "max_tokens");
  const absl::Status first = loop->Join(4, Request(5), sink, {.wait = true});
  slow.gate.Open();
  KVASIR_ASSERT_OK(first);
  EXPECT_EQ(FinishIn(sink->WaitForEnd(4)).emitted, 5);
}

TEST(LeaderLoopTest, TheQueueHasALimit) {
  SlowRig slow(1);
  slow.rig.waiting_max = 2;
  const auto sink = std::make_shared<FakeSink>();
  const auto loop = slow.StartBusy(sink);
  KVASIR_ASSERT_OK(loop->Join(2, Request(5), sink, {.wait = true}));
  KVASIR_ASSERT_OK(loop->Join(3, Request(5), sink, {.wait = true}));
  const absl::Status full = loop->Join(4, Request(5), sink, {.wait = true});
  EXPECT_EQ(ErrorOf(full).reason, reason::kServerBusy);
  EXPECT_GT(ErrorOf(full).retry_after_ms, 0);
  slow.gate.Open();
  for (const std::int64_t tag : {1, 2, 3}) EXPECT_EQ(FinishIn(sink->WaitForEnd(tag)).emitted, 5);
  KVASIR_ASSERT_OK(loop->Join(5, Request(5), sink, {.wait = true}));
  EXPECT_EQ(FinishIn(sink->WaitForEnd(5)).emitted, 5);
}

TEST(LeaderLoopTest, ATimeoutEndsARequestThatRunsOrWaitsAndFreesItsRoom) {
  SlowRig slow(1);
  const auto loop = slow.rig.Start();
  const auto sink = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(80), sink, {.timeout = milliseconds(500)}));
  slow.gate.WaitForOne();
  KVASIR_ASSERT_OK(loop->Join(2, Request(5), sink, {.wait = true, .timeout = milliseconds(300)}));
  KVASIR_ASSERT_OK(loop->Join(3, Request(5), sink, {.wait = true, .timeout = std::chrono::hours(1)}));
  slow.Advance(milliseconds(400));
  slow.gate.Open();
  for (const std::int64_t tag : {1, 2}) {
    const absl::Status expired = StatusIn(sink->WaitForEnd(tag));
    EXPECT_EQ(expired.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(ErrorOf(expired).reason, reason::kDeadlineExpired);
  }
  // At 410, 420, ... 500 ms: the prompt's token and nine more.
  EXPECT_EQ(sink->tokens(1).size(), 10U);
  EXPECT_TRUE(sink->tokens(2).empty());
  EXPECT_EQ(FinishIn(sink->WaitForEnd(3)).emitted, 5);
}

TEST(LeaderLoopTest, WaitingRequestsCanBeCancelledDroppedAndRetired) {
  SlowRig slow(1);
  const auto loop = slow.rig.Start();
  const auto sink = std::make_shared<FakeSink>();
  const auto gone = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(5), sink));
  slow.gate.WaitForOne();
  KVASIR_ASSERT_OK(loop->Join(2, Request(5), sink, {.wait = true}));
  KVASIR_ASSERT_OK(loop->Join(1, Request(5), gone, {.wait = true}));
  KVASIR_ASSERT_OK(loop->Join(3, Request(5), sink, {.wait = true}));
  loop->Cancel(2, sink);
  loop->Drop(gone);
  loop->Drain();
  slow.gate.Open();
  const RequestFinished cancelled = FinishIn(sink->WaitForEnd(2));
  EXPECT_EQ(cancelled.reason, EndReason::kCancelled);
  EXPECT_EQ(cancelled.emitted, 0);
  EXPECT_EQ(ErrorOf(StatusIn(sink->WaitForEnd(3))).reason, reason::kPlanRetired);
  EXPECT_EQ(FinishIn(sink->WaitForEnd(1)).emitted, 5) << "a running request goes on to its end";
  EXPECT_TRUE(gone->tokens(1).empty());
}

}  // namespace
}  // namespace kvasir
