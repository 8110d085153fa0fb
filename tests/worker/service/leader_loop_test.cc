// Rank 0's loop with a real scheduler, and made-up ranks, peers and clients.
#include "worker/service/leader_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "worker/service/run_step.h"

namespace kvasir {
namespace {

using std::chrono::milliseconds;
using testing::StatusIs;

constexpr milliseconds kLong{20'000};
const PlanKey kKey{Epoch(3), "p"};

absl::Status Nan() {
  return MakeError(
      {.code = absl::StatusCode::kDataLoss, .reason = reason::kNotANumber, .message = "rank 1: NON_FINITE"});
}

absl::Status Unreachable() {
  return MakeError({.code = absl::StatusCode::kUnavailable,
                    .reason = reason::kPeerUnreachable,
                    .message = "node-b does not answer"});
}

// What any rank computes: every sequence emits the number of the step.
StepOutcome Answer(const StepPlan& step) {
  StepOutcome outcome{.step = step.step, .sequences = {}};
  for (const StepSequence& sequence : step.sequences) {
    SequenceOutcome& out = outcome.sequences.emplace_back();
    out.id = sequence.id;
    if (step.kind != StepKind::kPrefill || sequence.last_chunk) {
      out.emitted = {static_cast<std::int32_t>(step.step % testing::kSmallVocab)};
    }
  }
  return outcome;
}

class FakePeer final : public StepPeer {
 public:
  using Behaviour = std::function<absl::StatusOr<StepOutcome>(const StepPlan&)>;
  explicit FakePeer(Behaviour behaviour) : behaviour_(std::move(behaviour)) {}
  [[nodiscard]] std::string name() const override { return "node-b:1"; }
  void Start(const StepPlan& step, milliseconds /*timeout*/, Done done) override { done(behaviour_(step)); }
  void Cancel() override {}

 private:
  Behaviour behaviour_;
};

// Answers only when it is cancelled.
class WaitingPeer final : public StepPeer {
 public:
  explicit WaitingPeer(absl::Status answer) : answer_(std::move(answer)) {}
  [[nodiscard]] std::string name() const override { return "node-b:1"; }
  void Start(const StepPlan& /*step*/, milliseconds /*timeout*/, Done done) override {
    done_ = std::move(done);
  }
  void Cancel() override { done_(answer_); }

 private:
  const absl::Status answer_;
  Done done_;
};

class FakeSink final : public DecodeSink {
 public:
  explicit FakeSink(std::size_t capacity = 1'000'000) : capacity_(capacity) {}
  bool Push(const DecodeEvent& event) override {
    const std::lock_guard lock(mutex_);
    if (events_.size() >= capacity_) return false;
    events_.push_back(event);
    changed_.notify_all();
    return true;
  }
  void Fail(const std::vector<std::int64_t>& tags, const absl::Status& cause) override {
    const std::lock_guard lock(mutex_);
    for (const std::int64_t tag : tags) events_.push_back({tag, cause});
    failure_ = cause;
    changed_.notify_all();
  }

  // The last event of the tag, once it has come.
  DecodeEvent WaitForEnd(std::int64_t tag) {
    std::unique_lock lock(mutex_);
    DecodeEvent found;
    const bool came = changed_.wait_for(lock, kLong, [&] {
      for (const DecodeEvent& event : events_) {
        const bool end = std::holds_alternative<RequestFinished>(event.what) ||
                         std::holds_alternative<absl::Status>(event.what);
        if (event.tag == tag && end) {
          found = event;
          return true;
        }
      }
      return false;
    });
    EXPECT_TRUE(came) << "tag " << tag << " never ended";
    return found;
  }
  absl::Status WaitForFailure() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLong, [&] { return !failure_.ok(); }));
    return failure_;
  }
  bool WaitForTokens() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] {
      for (const DecodeEvent& event : events_) {
        if (std::holds_alternative<RequestTokens>(event.what)) return true;
      }
      return false;
    });
  }
  absl::Status failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  std::vector<std::int32_t> tokens(std::int64_t tag) {
    const std::lock_guard lock(mutex_);
    std::vector<std::int32_t> all;
    for (const DecodeEvent& event : events_) {
      const auto* tokens = std::get_if<RequestTokens>(&event.what);
      if (event.tag == tag && tokens != nullptr)
        all.insert(all.end(), tokens->tokens.begin(), tokens->tokens.end());
    }
    return all;
  }

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<DecodeEvent> events_;
  absl::Status failure_;
};

struct Rig {
  std::function<absl::StatusOr<StepOutcome>(const StepPlan&)> execute = Answer;
  FakePeer::Behaviour peer = Answer;
  std::function<void()> on_drained;
  std::function<void(const absl::Status&)> on_failed;
  std::int64_t max_requests = 4;
  std::size_t waiting_max = kWaitingMax;
  std::function<std::chrono::nanoseconds()> now;

  std::unique_ptr<LeaderLoop> Start() const {
    testing::EnginePlanOptions plan_options;
    plan_options.draft_tokens = 0;
    plan_options.max_requests = max_requests;
    const Plan plan = testing::MakeEnginePlan(plan_options);
    LeaderLoopOptions options;
    options.key = kKey;
    auto scheduler = Scheduler::Create(plan, kKey.plan_id, kKey.epoch, testing::kSmallVocab);
    EXPECT_TRUE(scheduler.ok()) << scheduler.status();
    options.scheduler = *std::move(scheduler);
    options.peers.push_back(std::make_unique<FakePeer>(peer));
    options.execute = execute;
    options.abort = [](const std::string&) {};
    options.on_drained = on_drained;
    options.on_failed = on_failed;
    options.waiting_max = waiting_max;
    if (now) options.now = now;
    return std::make_unique<LeaderLoop>(std::move(options));
  }
};

SequenceRequest Request(std::int64_t max_tokens, std::vector<std::int32_t> stops = {}) {
  return {.prompt = {1, 2, 3}, .max_tokens = max_tokens, .stop_tokens = std::move(stops), .speculate = false};
}

absl::Status StatusIn(const DecodeEvent& event) {
  const auto* status = std::get_if<absl::Status>(&event.what);
  return status == nullptr ? absl::OkStatus() : *status;
}

RequestFinished FinishIn(const DecodeEvent& event) {
  const auto* finished = std::get_if<RequestFinished>(&event.what);
  EXPECT_NE(finished, nullptr);
  return finished == nullptr ? RequestFinished{} : *finished;
}

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
  KVASIR_ASSERT_OK(loop->Join(1, bad, sink));
  KVASIR_ASSERT_OK(loop->Join(2, Request(5), sink));
  EXPECT_THAT(StatusIn(sink->WaitForEnd(1)), StatusIs(absl::StatusCode::kInvalidArgument, "token 96"));
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

// A gate that steps wait at, so that a test can act in the middle of one.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void WaitForOne() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLong, [this] { return waiting_ > 0; }));
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

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

// A clock that only the test moves, and steps that wait at a gate, each taking 10 ms of that clock.
class SlowRig {
 public:
  explicit SlowRig(std::int64_t max_requests) {
    rig.max_requests = max_requests;
    rig.now = [this] { return std::chrono::nanoseconds(time_.load()); };
    rig.execute = [this](const StepPlan& step) {
      gate.Pass();
      Advance(milliseconds(10));
      return Answer(step);
    };
  }
  void Advance(std::chrono::nanoseconds by) { time_ += by.count(); }
  Rig rig;
  Gate gate;

 private:
  std::atomic<std::int64_t> time_ = 0;
};

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

TEST(LeaderLoopTest, ThoseWhoWaitAreAdmittedInOrderAndNobodyOvertakesThem) {
  SlowRig slow(1);
  const auto loop = slow.rig.Start();
  const auto sink = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(5), sink));
  slow.gate.WaitForOne();
  KVASIR_ASSERT_OK(loop->Join(2, Request(5), sink, {.wait = true}));
  KVASIR_ASSERT_OK(loop->Join(3, Request(5), sink, {.wait = true}));
  KVASIR_ASSERT_OK(loop->Join(4, Request(5), sink));
  SequenceRequest never = Request(5);
  never.prompt = {-1};
  KVASIR_ASSERT_OK(loop->Join(5, never, sink, {.wait = true}));
  slow.gate.Open();
  EXPECT_EQ(FinishIn(sink->WaitForEnd(1)).queue_time, milliseconds(0));
  const absl::Status refused = StatusIn(sink->WaitForEnd(4));
  EXPECT_EQ(ErrorOf(refused).reason, reason::kTooManyRequests);
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kResourceExhausted, "2 requests wait for room before this"));
  // Five steps each.
  EXPECT_EQ(FinishIn(sink->WaitForEnd(2)).queue_time, milliseconds(50));
  EXPECT_EQ(FinishIn(sink->WaitForEnd(3)).queue_time, milliseconds(100));
  EXPECT_THAT(StatusIn(sink->WaitForEnd(5)), StatusIs(absl::StatusCode::kInvalidArgument, "token -1"));
}

TEST(LeaderLoopTest, TheQueueHasALimit) {
  SlowRig slow(1);
  slow.rig.waiting_max = 2;
  const auto loop = slow.rig.Start();
  const auto sink = std::make_shared<FakeSink>();
  KVASIR_ASSERT_OK(loop->Join(1, Request(5), sink));
  slow.gate.WaitForOne();
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

struct StepCase {
  std::string name;
  absl::Status local;
  absl::Status peer;
  absl::StatusCode code;
  std::string reason;
  bool local_first = false;
};
void PrintTo(const StepCase& c, std::ostream* out) { *out << c.name; }

class RunStepTest : public ::testing::TestWithParam<StepCase> {};

TEST_P(RunStepTest, TheCauseIsTheOneThatExplainsTheOthers) {
  StepPlan step{.epoch = kKey.epoch,
                .plan_id = kKey.plan_id,
                .step = 5,
                .kind = StepKind::kDecode,
                .zero_parents = {},
                .sequences = {}};
  const auto answer = [&](const absl::Status& status) -> absl::StatusOr<StepOutcome> {
    if (!status.ok()) return status;
    return Answer(step);
  };
  std::vector<std::unique_ptr<StepPeer>> peers;
  if (GetParam().local_first) {
    peers.push_back(std::make_unique<WaitingPeer>(GetParam().peer));
  } else {
    peers.push_back(std::make_unique<FakePeer>([&](const StepPlan&) { return answer(GetParam().peer); }));
  }
  const StepRunner local{[&](const StepPlan&) { return answer(GetParam().local); }, [](const std::string&) {},
                         kLong};
  const absl::StatusOr<StepOutcome> outcome = RunStepEverywhere(local, peers, step);
  EXPECT_EQ(outcome.status().code(), GetParam().code) << outcome.status();
  EXPECT_EQ(outcome.ok() ? "" : ErrorOf(outcome.status()).reason, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Causes, RunStepTest,
    ::testing::Values(StepCase{"AllWell", absl::OkStatus(), absl::OkStatus(), absl::StatusCode::kOk, ""},
                      StepCase{"BothSawNaN", Nan(), Nan(), absl::StatusCode::kDataLoss, reason::kNotANumber},
                      StepCase{"OneSawNaN", absl::OkStatus(), Nan(), absl::StatusCode::kInternal, "INTERNAL"},
                      StepCase{"PeerIsGone", absl::CancelledError("aborted"), Unreachable(),
                               absl::StatusCode::kUnavailable, reason::kRankLost},
                      StepCase{"PeerIsSilent", absl::CancelledError("aborted"),
                               absl::DeadlineExceededError("late"), absl::StatusCode::kUnavailable,
                               reason::kRankLost},
                      StepCase{"PeerRefuses", absl::CancelledError("aborted"),
                               absl::FailedPreconditionError("not running"),
                               absl::StatusCode::kFailedPrecondition, "FAILED_PRECONDITION"},
                      StepCase{"LocalIsBroken", absl::InternalError("bug"), absl::CancelledError("cancelled"),
                               absl::StatusCode::kInternal, "INTERNAL", true},
                      StepCase{"PeerStops", absl::CancelledError("aborted"), absl::CancelledError("stopping"),
                               absl::StatusCode::kUnavailable, reason::kRankLost},
                      StepCase{"LocalNoticesFirst", absl::UnavailableError("rank 1 is gone"), Unreachable(),
                               absl::StatusCode::kUnavailable, reason::kRankLost, true}),
    [](const auto& tested) { return tested.param.name; });

TEST(RunStepTest, OtherTokensOnAPeerAreAnError) {
  StepPlan step{.epoch = kKey.epoch,
                .plan_id = kKey.plan_id,
                .step = 5,
                .kind = StepKind::kDecode,
                .zero_parents = {},
                .sequences = {}};
  step.sequences.emplace_back();
  std::vector<std::unique_ptr<StepPeer>> peers;
  peers.push_back(std::make_unique<FakePeer>([](const StepPlan& s) {
    StepOutcome outcome = Answer(s);
    outcome.sequences.front().emitted = {77};
    return outcome;
  }));
  const StepRunner local{[](const StepPlan& s) { return Answer(s); }, [](const std::string&) {}, kLong};
  EXPECT_THAT(RunStepEverywhere(local, peers, step),
              StatusIs(absl::StatusCode::kInternal, "another outcome"));
}

}  // namespace
}  // namespace kvasir
