// Single stories of the apply machine: who is called in which order and what the caller is told. All orders
// of events: tests/property/explore_apply_test.cc.
#include "planner/dispatch/apply_machine.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

constexpr const char* kCallNames[] = {"query", "prepare", "commit", "abort", "release"};

ApplySpec Spec(const std::string& plan_id, int workers = 2) {
  ApplySpec spec{.plan_id = plan_id};
  for (int w = 0; w < workers; ++w) {
    spec.workers.push_back({absl::StrFormat("node-%d:1", w), {w}});
  }
  return spec;
}

absl::Status Error(const char* reason, absl::StatusCode code = absl::StatusCode::kAborted) {
  return MakeError({.code = code, .reason = reason, .message = reason});
}

absl::Status Unreachable() { return Error(reason::kPeerUnreachable, absl::StatusCode::kUnavailable); }

// Runs a machine to its end; `answer` decides what each call comes to. The log has one word per action.
struct Driver {
  explicit Driver(const DeploymentRecord& record = {.name = "d"}) : state(MakeApplyState(record)) {}

  std::function<absl::Status(const CallAction&)> answer = [](const CallAction&) { return absl::OkStatus(); };
  std::function<absl::Status(const DeploymentRecord&)> persist = [](const DeploymentRecord&) {
    return absl::OkStatus();
  };
  std::vector<WorkerObservation> seen =
      std::vector<WorkerObservation>(4, WorkerObservation{.rank_count_max = 4});
  ApplyState state;
  std::vector<std::string> log;
  std::vector<PendingPhase> persisted;
  absl::Status outcome = absl::UnknownError("not finished");
  std::int64_t now_ms = 0;

  void Run(const ApplyEvent& first) {
    std::deque<ApplyEvent> events = {first};
    while (!events.empty()) {
      ApplyStep step = StepApply(std::move(state), events.front(), now_ms);
      events.pop_front();
      state = std::move(step.state);
      for (const ApplyAction& action : step.actions) {
        if (const auto* record = std::get_if<PersistAction>(&action)) {
          log.push_back(record->record.pending.has_value()
                            ? "persist:" + std::string(PendingPhaseName(record->record.pending->phase))
                            : "persist");
          events.emplace_front(PersistedEvent{persist(record->record)});
        } else if (const auto* call = std::get_if<CallAction>(&action)) {
          log.push_back(
              absl::StrFormat("%s:%d", kCallNames[static_cast<std::size_t>(call->kind)], call->worker));
          events.emplace_back(ReplyEvent{call->worker, call->call, answer(*call), seen[call->worker]});
        } else if (const auto* finish = std::get_if<FinishAction>(&action)) {
          outcome = finish->status;
        }
      }
    }
  }

  [[nodiscard]] std::string Log() const {
    std::string text;
    for (const std::string& word : log) {
      text += (text.empty() ? "" : " ") + word;
    }
    return text;
  }
};

DeploymentRecord Serving(const std::string& plan_id, std::int64_t epoch = 3, int workers = 2) {
  DeploymentRecord record{.name = "d", .version = 5, .max_epoch = Epoch(epoch)};
  record.serving = ServingPlan{Epoch(epoch), Spec(plan_id, workers)};
  return record;
}

TEST(ApplyMachine, PreparesAllRenewsPersistsAndCommitsTheLeaderLast) {
  Driver driver;
  driver.Run(StartApplyEvent{.spec = Spec("new", 3)});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_EQ(
      driver.Log(),
      "query:0 query:1 query:2 persist:preparing prepare:0 prepare:1 prepare:2 prepare:0 prepare:1 prepare:2 "
      "persist:committing commit:1 commit:2 commit:0 persist");
  ASSERT_TRUE(driver.state.record.serving.has_value());
  EXPECT_EQ(driver.state.record.serving->epoch, Epoch(1));
  EXPECT_EQ(driver.state.record.version, 3);
  EXPECT_FALSE(driver.state.record.pending.has_value());
}

TEST(ApplyMachine, TakesAnEpochAboveTheStoresAndEveryWorkers) {
  Driver driver(Serving("old", 7));
  driver.seen[1].max_epoch = Epoch(41);
  driver.Run(StartApplyEvent{.spec = Spec("new")});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_EQ(driver.state.record.serving->epoch, Epoch(42));
}

TEST(ApplyMachine, OneWorkerIsEnough) {
  Driver driver;
  driver.Run(StartApplyEvent{.spec = Spec("new", 1)});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_EQ(driver.Log(),
            "query:0 persist:preparing prepare:0 prepare:0 persist:committing commit:0 persist");
}

TEST(ApplyMachine, ReleasesWorkersThatOnlyTheOldPlanHad) {
  Driver driver(Serving("old", 3, 3));
  driver.Run(StartApplyEvent{.spec = Spec("new", 2)});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_EQ(
      driver.Log(),
      "query:0 query:1 query:2 persist:preparing prepare:0 prepare:1 prepare:0 prepare:1 persist:committing "
      "commit:1 commit:0 release:2 persist");
}

TEST(ApplyMachine, ReplaceReleasesFirstUnderAnEpochOfItsOwn) {
  Driver driver(Serving("old"));
  driver.Run(StartApplyEvent{.spec = Spec("new"), .mode = ApplyMode::kReplace});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_EQ(
      driver.Log(),
      "query:0 query:1 persist:releasing release:0 release:1 persist:preparing prepare:0 prepare:1 prepare:0 "
      "prepare:1 persist:committing commit:1 commit:0 persist");
  EXPECT_EQ(driver.state.record.serving->epoch, Epoch(5));
}

TEST(ApplyMachine, AFailedReplaceBringsTheOldPlanBack) {
  Driver driver(Serving("old"));
  driver.answer = [&driver](const CallAction& call) {
    const bool refused = call.kind == CallKind::kPrepare && driver.state.spec.plan_id == "new";
    return refused ? Error(reason::kOutOfMemory, absl::StatusCode::kResourceExhausted) : absl::OkStatus();
  };
  driver.Run(StartApplyEvent{.spec = Spec("new"), .mode = ApplyMode::kReplace});
  EXPECT_EQ(ReasonOf(driver.outcome), reason::kOutOfMemory);
  EXPECT_THAT(std::string(driver.outcome.message()),
              ::testing::HasSubstr("the old plan serves again as epoch"));
  ASSERT_TRUE(driver.state.record.serving.has_value());
  EXPECT_EQ(driver.state.record.serving->spec.plan_id, "old");
  EXPECT_EQ(driver.state.record.last_error.reason, reason::kOutOfMemory);
}

TEST(ApplyMachine, APreflightCommitsNothingAndLeavesTheOldPlanAlone) {
  Driver driver(Serving("old"));
  driver.Run(StartApplyEvent{.spec = Spec("new"), .preflight = true});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_EQ(driver.Log(),
            "query:0 query:1 persist:preparing prepare:0 prepare:1 persist:aborting abort:0 abort:1 persist");
  EXPECT_EQ(driver.state.record.serving->spec.plan_id, "old");
}

TEST(ApplyMachine, APreflightAloneLeavesNoDeployment) {
  Driver driver;
  driver.Run(StartApplyEvent{.spec = Spec("new"), .preflight = true});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_TRUE(driver.state.record.deleted);
}

TEST(ApplyMachine, DifferentFactsAreNamedBeforeAnythingIsAllocated) {
  Driver driver;
  driver.seen[0].facts = {{"build.version", "1"}, {"library.comm", "2.28"}};
  driver.seen[1].facts = {{"build.version", "1"}, {"library.comm", "2.27"}};
  driver.seen[2].facts = {{"build.version", "1"}, {"library.comm", "2.28"}};
  driver.Run(StartApplyEvent{.spec = Spec("new", 3)});
  const TypedError error = ErrorOf(driver.outcome);
  EXPECT_EQ(error.reason, reason::kRanksDisagree);
  EXPECT_EQ(error.metadata.at("rank"), "1");
  EXPECT_EQ(error.metadata.at("worker"), "node-1:1");
  EXPECT_EQ(error.metadata.at("fact"), "library.comm");
  EXPECT_EQ(error.metadata.at("value"), "2.27");
  EXPECT_EQ(error.metadata.at("others"), "2.28");
  EXPECT_EQ(driver.Log(), "query:0 query:1 query:2 persist");
}

TEST(ApplyMachine, AWorkerIsNotGivenMoreRanksThanItHosts) {
  Driver driver;
  driver.seen[1].rank_count_max = 0;
  driver.Run(StartApplyEvent{.spec = Spec("new")});
  EXPECT_EQ(ReasonOf(driver.outcome), reason::kRankCapacity);
}

TEST(ApplyMachine, AWorkerThatDoesNotAnswerIsNamedAfterSomeTries) {
  Driver driver;
  driver.answer = [](const CallAction& call) { return call.worker == 1 ? Unreachable() : absl::OkStatus(); };
  driver.Run(StartApplyEvent{.spec = Spec("new")});
  EXPECT_EQ(ReasonOf(driver.outcome), reason::kPeerUnreachable);
  EXPECT_EQ(driver.Log(), "query:0 query:1 query:1 query:1 persist");
}

TEST(ApplyMachine, TheCauseIsReportedNotItsConsequence) {
  Driver driver;
  driver.answer = [](const CallAction& call) {
    if (call.kind == CallKind::kQuery) return absl::OkStatus();
    if (call.worker == 1) return Unreachable();
    return call.kind == CallKind::kPrepare ? Error(reason::kRankLost, absl::StatusCode::kUnavailable)
                                           : absl::OkStatus();
  };
  driver.Run(StartApplyEvent{.spec = Spec("new")});
  EXPECT_EQ(ReasonOf(driver.outcome), reason::kPeerUnreachable);
}

TEST(ApplyMachine, ALostPreparationIsMadeAgainUnderTheSameEpoch) {
  Driver driver;
  bool lost = false;
  driver.answer = [&lost](const CallAction& call) {
    const bool first = call.kind == CallKind::kCommit && call.worker == 1 && !std::exchange(lost, true);
    return first ? Error(reason::kNotPrepared, absl::StatusCode::kFailedPrecondition) : absl::OkStatus();
  };
  driver.Run(StartApplyEvent{.spec = Spec("new")});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_EQ(driver.state.record.serving->epoch, Epoch(1));
  EXPECT_THAT(driver.Log(),
              ::testing::HasSubstr("persist:committing commit:1 prepare:1 commit:1 commit:0 persist"));
}

TEST(ApplyMachine, AfterTheFirstCommitAFailureRetiresEverythingUnderANewEpoch) {
  Driver driver;
  driver.answer = [](const CallAction& call) {
    return call.kind == CallKind::kCommit && call.worker == 0 ? Error(reason::kEpochEnded) : absl::OkStatus();
  };
  driver.Run(StartApplyEvent{.spec = Spec("new")});
  EXPECT_EQ(ReasonOf(driver.outcome), reason::kEpochEnded);
  EXPECT_FALSE(driver.state.record.serving.has_value());
  EXPECT_EQ(driver.state.record.max_epoch, Epoch(2));
  EXPECT_THAT(driver.Log(),
              ::testing::HasSubstr("commit:1 commit:0 persist:retiring release:0 release:1 persist"));
}

TEST(ApplyMachine, AStaleEpochMeansThatSomebodyElseHasTheWorkers) {
  Driver driver;
  driver.answer = [](const CallAction& call) {
    return call.kind == CallKind::kPrepare ? Error(reason::kStaleEpoch) : absl::OkStatus();
  };
  driver.Run(StartApplyEvent{.spec = Spec("new")});
  EXPECT_EQ(ReasonOf(driver.outcome), reason::kStaleEpoch);
  EXPECT_EQ(driver.Log(), "query:0 query:1 persist:preparing prepare:0 prepare:1 persist");
}

DeploymentRecord Interrupted(PendingPhase phase) {
  DeploymentRecord record = Serving("old");
  record.max_epoch = Epoch(4);
  record.pending = PendingApply{.epoch = Epoch(4), .phase = phase, .spec = Spec("new")};
  return record;
}

TEST(ApplyMachine, AfterARestartCommittingIsRolledForward) {
  Driver driver(Interrupted(PendingPhase::kCommitting));
  driver.Run(RecoverEvent{});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_EQ(driver.Log(), "query:0 query:1 prepare:0 prepare:1 commit:1 commit:0 persist");
  EXPECT_EQ(driver.state.record.serving->spec.plan_id, "new");
  EXPECT_EQ(driver.state.record.serving->epoch, Epoch(4));
}

TEST(ApplyMachine, WhatCannotBeRolledForwardIsRetiredNotAborted) {
  Driver driver(Interrupted(PendingPhase::kCommitting));
  driver.answer = [](const CallAction& call) {
    const bool refused = call.kind == CallKind::kPrepare && call.worker == 1;
    return refused ? Error(reason::kRankLost, absl::StatusCode::kInternal) : absl::OkStatus();
  };
  driver.Run(RecoverEvent{});
  EXPECT_EQ(driver.Log(), "query:0 query:1 prepare:0 prepare:1 persist:retiring release:0 release:1 persist");
  EXPECT_FALSE(driver.state.record.serving.has_value());
}

TEST(ApplyMachine, AfterARestartAnythingElseIsAborted) {
  for (const PendingPhase phase : {PendingPhase::kPreparing, PendingPhase::kAborting}) {
    Driver driver(Interrupted(phase));
    driver.Run(RecoverEvent{});
    EXPECT_EQ(driver.Log(), "persist:aborting abort:0 abort:1 persist");
    EXPECT_EQ(driver.state.record.serving->spec.plan_id, "old");
    EXPECT_EQ(driver.state.record.last_error.reason, reason::kPlannerRestarted);
  }
}

TEST(ApplyMachine, AnInterruptedRetirementIsRepeated) {
  Driver driver(Interrupted(PendingPhase::kRetiring));
  driver.Run(RecoverEvent{});
  EXPECT_EQ(driver.Log(), "release:0 release:1 persist");
  EXPECT_FALSE(driver.state.record.serving.has_value());
}

TEST(ApplyMachine, DeleteReleasesAndForgets) {
  Driver driver(Serving("old"));
  driver.answer = [](const CallAction& call) { return call.worker == 1 ? Unreachable() : absl::OkStatus(); };
  driver.Run(StartDeleteEvent{});
  KVASIR_EXPECT_OK(driver.outcome);
  EXPECT_TRUE(driver.state.record.deleted);
  EXPECT_EQ(driver.state.record.max_epoch, Epoch(4));
  EXPECT_TRUE(driver.state.workers[1].unreachable);
  EXPECT_FALSE(driver.state.workers[0].unreachable);
}

TEST(ApplyMachine, NothingIsSentUnderAnEpochThatCouldNotBeStored) {
  Driver driver;
  driver.persist = [](const DeploymentRecord&) { return absl::InternalError("the disk is full"); };
  driver.Run(StartApplyEvent{.spec = Spec("new")});
  EXPECT_THAT(driver.outcome, testing::StatusIs(absl::StatusCode::kInternal, "disk is full"));
  EXPECT_EQ(driver.Log(), "query:0 query:1 persist:preparing");
}

TEST(ApplyMachine, AnotherDispatchersRecordStopsThisOne) {
  Driver driver;
  driver.persist = [](const DeploymentRecord& record) {
    return record.pending.has_value() && record.pending->phase == PendingPhase::kCommitting
               ? Error(reason::kApplySuperseded)
               : absl::OkStatus();
  };
  driver.Run(StartApplyEvent{.spec = Spec("new")});
  EXPECT_EQ(ReasonOf(driver.outcome), reason::kApplySuperseded);
  EXPECT_THAT(driver.Log(), ::testing::EndsWith("persist:committing"));
}

TEST(ApplyMachine, ALeaseIsRenewedWhileOthersStillPrepare) {
  ApplyStep step = StepApply(MakeApplyState({.name = "d"}), StartApplyEvent{.spec = Spec("new")}, 0);
  auto reply = [&step](std::size_t worker) {
    const std::int64_t call = step.state.workers[worker].call;
    step = StepApply(std::move(step.state),
                     ReplyEvent{worker, call, absl::OkStatus(), WorkerObservation{.rank_count_max = 4}}, 1);
  };
  reply(0);
  reply(1);
  step = StepApply(std::move(step.state), PersistedEvent{}, 1);
  reply(0);
  const std::int64_t half = LeaseMs(Spec("new").times) / 2;
  step = StepApply(std::move(step.state), ApplyTickEvent{}, half);
  EXPECT_TRUE(step.actions.empty());
  step = StepApply(std::move(step.state), ApplyTickEvent{}, half + 1);
  ASSERT_EQ(step.actions.size(), 1U);
  EXPECT_EQ(std::get<CallAction>(step.actions[0]).kind, CallKind::kPrepare);
  EXPECT_EQ(std::get<CallAction>(step.actions[0]).worker, 0U);
}

}  // namespace
}  // namespace kvasir
