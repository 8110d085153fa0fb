// Rank 0's loop with a real scheduler, and made-up ranks, peers and clients.
#ifndef KVASIR_TESTS_WORKER_SERVICE_LEADER_LOOP_RIG_H_
#define KVASIR_TESTS_WORKER_SERVICE_LEADER_LOOP_RIG_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "worker/service/leader_loop.h"
#include "worker/service/run_step.h"

namespace kvasir::testing {

using std::chrono::milliseconds;

inline constexpr milliseconds kLong{20'000};
inline const PlanKey kKey{Epoch(3), "p"};

inline absl::Status Nan() {
  return MakeError(
      {.code = absl::StatusCode::kDataLoss, .reason = reason::kNotANumber, .message = "rank 1: NON_FINITE"});
}

inline absl::Status Unreachable() {
  return MakeError({.code = absl::StatusCode::kUnavailable,
                    .reason = reason::kPeerUnreachable,
                    .message = "node-b does not answer"});
}

// What any rank computes: every sequence emits the number of the step.
inline StepOutcome Answer(const StepPlan& step) {
  StepOutcome outcome{.step = step.step, .sequences = {}};
  for (const StepSequence& sequence : step.sequences) {
    SequenceOutcome& out = outcome.sequences.emplace_back();
    out.id = sequence.id;
    if (step.kind != StepKind::kPrefill || sequence.last_chunk) {
      out.emitted = {static_cast<std::int32_t>(step.step % kSmallVocab)};
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
  std::int64_t parents = EnginePlanOptions{}.parents;
  std::size_t waiting_max = kWaitingMax;
  std::int64_t draft_tokens = 0;
  bool adaptive_verification = false;
  std::function<std::chrono::nanoseconds()> now;

  std::unique_ptr<LeaderLoop> Start() const {
    EnginePlanOptions plan_options;
    plan_options.draft_tokens = draft_tokens;
    plan_options.max_requests = max_requests;
    plan_options.parents = parents;
    const Plan plan = MakeEnginePlan(plan_options);
    LeaderLoopOptions options;
    options.key = kKey;
    auto scheduler = Scheduler::Create(plan, kKey.plan_id, kKey.epoch, kSmallVocab);
    EXPECT_TRUE(scheduler.ok()) << scheduler.status();
    options.scheduler = *std::move(scheduler);
    options.peers.push_back(std::make_unique<FakePeer>(peer));
    options.execute = execute;
    options.abort = [](const std::string&) {};
    options.on_drained = on_drained;
    options.on_failed = on_failed;
    options.waiting_max = waiting_max;
    options.draft_tokens = draft_tokens;
    options.adaptive_verification = adaptive_verification;
    if (now) options.now = now;
    return std::make_unique<LeaderLoop>(std::move(options));
  }
};

inline SequenceRequest Request(std::int64_t max_tokens, std::vector<std::int32_t> stops = {}) {
  return {.prompt = {1, 2, 3}, .max_tokens = max_tokens, .stop_tokens = std::move(stops), .speculate = false};
}

inline absl::Status StatusIn(const DecodeEvent& event) {
  const auto* status = std::get_if<absl::Status>(&event.what);
  return status == nullptr ? absl::OkStatus() : *status;
}

inline RequestFinished FinishIn(const DecodeEvent& event) {
  const auto* finished = std::get_if<RequestFinished>(&event.what);
  EXPECT_NE(finished, nullptr);
  return finished == nullptr ? RequestFinished{} : *finished;
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
  // A loop whose first step, of a request with tag 1 and five tokens, stands at the gate.
  std::unique_ptr<LeaderLoop> StartBusy(const std::shared_ptr<DecodeSink>& sink) {
    auto loop = rig.Start();
    EXPECT_THAT(loop->Join(1, Request(5), sink), IsOk());
    gate.WaitForOne();
    return loop;
  }
  void Advance(std::chrono::nanoseconds by) { time_ += by.count(); }
  Rig rig;
  Gate gate;

 private:
  std::atomic<std::int64_t> time_ = 0;
};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_WORKER_SERVICE_LEADER_LOOP_RIG_H_
