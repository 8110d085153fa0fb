// The worker's state machine, rule by rule: one table, each case a script of events and what must come of the
// last.
#include "worker/engine/worker_machine.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace kvasir {
namespace {

const PlanKey kOne{Epoch(1), "a"};
const PlanKey kTwo{Epoch(2), "b"};
const PlanKey kThree{Epoch(3), "c"};

struct At {
  std::int64_t ms = 0;
  WorkerEvent event;
};

struct Case {
  std::string name;
  std::vector<At> script;
  WorkerVerdict verdict = WorkerVerdict::kOk;
  std::string actions;  // of the last event
  std::string state;    // after it
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string Name(const PlanKey& key) { return std::to_string(key.epoch.value()) + key.plan_id; }

std::string ActionsText(const std::vector<WorkerAction>& actions) {
  std::string text;
  for (const WorkerAction& action : actions) {
    constexpr const char* kWords[] = {"prepare", "activate", "drain", "free"};
    text += (text.empty() ? "" : " ") + std::string(kWords[static_cast<int>(action.kind)]) + ":" +
            Name(action.key);
  }
  return text;
}

std::string StateText(const DeploymentState& s) {
  std::string text = "max " + std::to_string(s.max_epoch.value());
  if (s.running.has_value()) text += " run " + Name(*s.running);
  if (s.draining.has_value()) {
    text += " drain " + Name(s.draining->key) + "@" + std::to_string(s.draining->until_ms);
  }
  if (s.pending.has_value()) {
    text += std::string(s.pending->ready ? " ready " : " preparing ") + Name(s.pending->key) + "@" +
            std::to_string(s.pending->lease_until_ms);
  }
  if (!s.failure.empty()) text += " failed: " + s.failure;
  return text;
}

std::vector<At> Join(std::vector<At> first, const std::vector<At>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<At> Prepared(const PlanKey& key, std::int64_t at = 0) {
  return {{at, PrepareEvent{key, 100}}, {at, PreparedEvent{key, true}}};
}

std::vector<At> Running(const PlanKey& key, std::int64_t at = 0) {
  return Join(Prepared(key, at), {{at, CommitEvent{key, 50}}});
}

class WorkerMachineTest : public ::testing::TestWithParam<Case> {};

TEST_P(WorkerMachineTest, LastEventGivesVerdictActionsAndState) {
  DeploymentState state;
  WorkerStep last;
  for (const At& at : GetParam().script) {
    last = StepWorker(state, at.event, at.ms);
    state = last.state;
  }
  EXPECT_EQ(WorkerVerdictName(last.verdict), WorkerVerdictName(GetParam().verdict)) << last.message;
  EXPECT_EQ(last.message.empty(), last.verdict == WorkerVerdict::kOk);
  EXPECT_EQ(ActionsText(last.actions), GetParam().actions);
  EXPECT_EQ(StateText(state), GetParam().state);
}

std::vector<Case> Cases() {
  using V = WorkerVerdict;
  return {
      {"PrepareStarts", {{5, PrepareEvent{kOne, 100}}}, V::kOk, "prepare:1a", "max 1 preparing 1a@105"},
      {"PrepareAgainWhileAtWorkRenewsTheLease",
       {{0, PrepareEvent{kOne, 100}}, {30, PrepareEvent{kOne, 100}}},
       V::kOk,
       "",
       "max 1 preparing 1a@130"},
      {"PrepareAgainWhenReadyRenewsTheLease", Join(Prepared(kOne), {{60, PrepareEvent{kOne, 200}}}), V::kOk,
       "", "max 1 ready 1a@260"},
      {"PrepareOfTheRunningPlanSucceeds", Join(Running(kOne), {{60, PrepareEvent{kOne, 200}}}), V::kOk, "",
       "max 1 run 1a"},
      {"PrepareBelowMaxIsStale", Join(Prepared(kTwo), {{1, PrepareEvent{kOne, 100}}}), V::kStaleEpoch, "",
       "max 2 ready 2b@100"},
      {"PrepareOfAnotherPlanUnderTheEpochIsRefused",
       Join(Prepared(kOne), {{1, PrepareEvent{{Epoch(1), "z"}, 100}}}), V::kEpochTaken, "",
       "max 1 ready 1a@100"},
      {"PrepareOfAnotherPlanUnderTheRunningEpochIsRefused",
       Join(Running(kOne), {{1, PrepareEvent{{Epoch(1), "z"}, 100}}}), V::kEpochTaken, "", "max 1 run 1a"},
      {"NewerPreparationFreesTheOlder", Join(Prepared(kOne), {{1, PrepareEvent{kTwo, 100}}}), V::kOk,
       "free:1a prepare:2b", "max 2 preparing 2b@101"},
      {"LeaseCountsFromTheEndOfTheWork",
       {{0, PrepareEvent{kOne, 100}}, {150, PreparedEvent{kOne, true}}},
       V::kOk,
       "",
       "max 1 ready 1a@250"},
      {"FailedPreparationFrees",
       {{0, PrepareEvent{kOne, 100}}, {1, PreparedEvent{kOne, false}}},
       V::kOk,
       "free:1a",
       "max 1"},
      {"FailedPreparationMayBeRepeatedUnderItsEpoch",
       {{0, PrepareEvent{kOne, 100}}, {1, PreparedEvent{kOne, false}}, {2, PrepareEvent{kOne, 100}}},
       V::kOk,
       "prepare:1a",
       "max 1 preparing 1a@102"},
      {"LeaseExpiresAtATick", Join(Prepared(kOne), {{100, TickEvent{}}}), V::kOk, "free:1a", "max 1"},
      {"LeaseHoldsBefore", Join(Prepared(kOne), {{99, TickEvent{}}}), V::kOk, "", "max 1 ready 1a@100"},
      {"ExpiredPreparationMayBeRepeated", Join(Prepared(kOne), {{100, PrepareEvent{kOne, 100}}}), V::kOk,
       "free:1a prepare:1a", "max 1 preparing 1a@200"},
      {"CommitAfterTheLeaseIsRefusedEvenWithoutATick", Join(Prepared(kOne), {{100, CommitEvent{kOne, 0}}}),
       V::kNotPrepared, "free:1a", "max 1"},
      {"CommitActivates", Join(Prepared(kOne), {{1, CommitEvent{kOne, 50}}}), V::kOk, "activate:1a",
       "max 1 run 1a"},
      {"CommitTwiceIsOne", Join(Running(kOne), {{1, CommitEvent{kOne, 50}}}), V::kOk, "", "max 1 run 1a"},
      {"CommitWhileAtWorkIsRefused",
       {{0, PrepareEvent{kOne, 100}}, {1, CommitEvent{kOne, 0}}},
       V::kNotPrepared,
       "",
       "max 1 preparing 1a@100"},
      {"CommitWithoutPreparationIsRefused", {{0, CommitEvent{kOne, 0}}}, V::kNotPrepared, "", "max 0"},
      {"CommitOfAnotherPlanIsRefused", Join(Prepared(kOne), {{1, CommitEvent{{Epoch(1), "z"}, 0}}}),
       V::kEpochTaken, "", "max 1 ready 1a@100"},
      {"CommitOfAStaleEpochIsRefused", Join(Prepared(kTwo), {{1, CommitEvent{kOne, 0}}}), V::kStaleEpoch, "",
       "max 2 ready 2b@100"},
      {"CommitDrainsTheOldPlan", Join(Running(kOne), Running(kTwo, 10)), V::kOk, "drain:1a activate:2b",
       "max 2 run 2b drain 1a@60"},
      {"ThirdPlanEndsTheDrainOfTheFirst", Join(Join(Running(kOne), Running(kTwo, 10)), Running(kThree, 20)),
       V::kOk, "free:1a drain:2b activate:3c", "max 3 run 3c drain 2b@70"},
      {"DrainDeadlineFrees", Join(Join(Running(kOne), Running(kTwo, 10)), {{60, TickEvent{}}}), V::kOk,
       "free:1a", "max 2 run 2b"},
      {"DrainedFreesEarly", Join(Join(Running(kOne), Running(kTwo, 10)), {{11, DrainedEvent{kOne}}}), V::kOk,
       "free:1a", "max 2 run 2b"},
      {"DrainedOfTheRunningPlanIsIgnored", Join(Running(kOne), {{1, DrainedEvent{kOne}}}), V::kOk, "",
       "max 1 run 1a"},
      {"AbortFrees", Join(Prepared(kOne), {{1, AbortEvent{kOne}}}), V::kOk, "free:1a", "max 1"},
      {"AbortTwiceIsOne", Join(Prepared(kOne), {{1, AbortEvent{kOne}}, {2, AbortEvent{kOne}}}), V::kOk, "",
       "max 1"},
      {"AbortBeforeItsPrepareFencesIt",
       {{0, AbortEvent{kOne}}, {1, PrepareEvent{kOne, 100}}},
       V::kEpochEnded,
       "",
       "max 1"},
      {"AbortOfTheRunningPlanIsRefused", Join(Running(kOne), {{1, AbortEvent{kOne}}}), V::kAlreadyCommitted,
       "", "max 1 run 1a"},
      {"AbortKeepsTheRunningPlan", Join(Join(Running(kOne), Prepared(kTwo, 1)), {{2, AbortEvent{kTwo}}}),
       V::kOk, "free:2b", "max 2 run 1a"},
      {"PreparationAbortedMeanwhileIsFreedWhenItEnds",
       {{0, PrepareEvent{kOne, 100}}, {1, AbortEvent{kOne}}, {2, PreparedEvent{kOne, true}}},
       V::kOk,
       "free:1a",
       "max 1"},
      {"ReleaseDrainsAndFreesThePreparation",
       Join(Join(Running(kOne), Prepared(kTwo, 1)), {{2, ReleaseEvent{Epoch(3), 40}}}), V::kOk,
       "free:2b drain:1a", "max 3 drain 1a@42"},
      {"ReleaseTwiceIsOne",
       Join(Running(kOne), {{2, ReleaseEvent{Epoch(3), 40}}, {9, ReleaseEvent{Epoch(3), 40}}}), V::kOk, "",
       "max 3 drain 1a@42"},
      {"ReleaseUnderTheRunningEpochIsRefused", Join(Running(kOne), {{2, ReleaseEvent{Epoch(1), 40}}}),
       V::kEpochTaken, "", "max 1 run 1a"},
      {"ReleaseBelowIsStale", Join(Running(kTwo), {{2, ReleaseEvent{Epoch(1), 4}}}), V::kStaleEpoch, "",
       "max 2 run 2b"},
      {"PrepareUnderAReleaseEpochIsRefused",
       {{0, ReleaseEvent{Epoch(1), 0}}, {1, PrepareEvent{kOne, 100}}},
       V::kEpochTaken,
       "",
       "max 1"},
      {"LostRunningPlanIsRememberedAsFailure",
       Join(Running(kOne), {{1, LostEvent{kOne, "RANK_LOST: rank 1"}}}), V::kOk, "free:1a",
       "max 1 failed: RANK_LOST: rank 1"},
      {"NewPlanClearsTheFailure", Join(Join(Running(kOne), {{1, LostEvent{kOne, "gone"}}}), Running(kTwo, 2)),
       V::kOk, "activate:2b", "max 2 run 2b"},
      {"LostPreparationIsFreed", Join(Prepared(kOne), {{1, LostEvent{kOne, "gone"}}}), V::kOk, "free:1a",
       "max 1"},
      {"LostWhileAtWorkIsTheWorksBusiness",
       {{0, PrepareEvent{kOne, 100}}, {1, LostEvent{kOne, "gone"}}},
       V::kOk,
       "",
       "max 1 preparing 1a@100"},
      {"LostDrainingPlanIsFreed",
       Join(Join(Running(kOne), Running(kTwo, 10)), {{11, LostEvent{kOne, "gone"}}}), V::kOk, "free:1a",
       "max 2 run 2b"},
  };
}

INSTANTIATE_TEST_SUITE_P(Rules, WorkerMachineTest, ::testing::ValuesIn(Cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(WorkerMachineExecuteTest, OnlyRunningOrDrainingMayExecute) {
  DeploymentState state;
  EXPECT_FALSE(MayExecute(state, kOne));
  state.pending = PendingPlan{kThree, 10, 10, true};
  state.running = kTwo;
  state.draining = DrainingPlan{kOne, 10};
  EXPECT_TRUE(MayExecute(state, kOne));
  EXPECT_TRUE(MayExecute(state, kTwo));
  EXPECT_FALSE(MayExecute(state, kThree));
  EXPECT_TRUE(Holds(state, kThree));
  EXPECT_FALSE(MayExecute(state, {Epoch(2), "a"}));
  EXPECT_FALSE(Holds(state, {Epoch(1), "b"}));
}

}  // namespace
}  // namespace kvasir
