// The dispatcher with real worker machines and a real store, without a network.
#include "planner/dispatch/dispatcher.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/dispatch/file_store.h"
#include "tests/planner/dispatch/fake_workers.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;
using testing::FakeWorkers;

StartApplyEvent Apply(const std::string& plan_id, const std::string& request_id = "") {
  StartApplyEvent event;
  event.spec.plan_id = plan_id;
  event.spec.workers = {{"node-a:1", {0}}, {"node-b:1", {1}}};
  event.request_id = request_id;
  return event;
}

// What a listener heard.
struct Heard {
  std::vector<ApplyProgress> progress;
  std::promise<ApplyEnd> promise;
  std::future<ApplyEnd> end = promise.get_future();
};

class DispatcherTest : public ::testing::Test {
 protected:
  DispatcherTest()
      : directory_(fs::path(::testing::TempDir()) /
                   absl::StrFormat("kvasir_dispatcher_%s",
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(directory_);
    auto store = FileStore::Open(directory_);
    KVASIR_EXPECT_OK(store);
    store_ = *std::move(store);
    dispatcher_ = std::make_unique<Dispatcher>(*store_, workers_, clock_);
  }
  ~DispatcherTest() override {
    dispatcher_->Stop();
    fs::remove_all(directory_);
  }

  ApplyListener Listen(const std::shared_ptr<Heard>& heard) {
    return {.progress = [heard](const ApplyProgress& progress) { heard->progress.push_back(progress); },
            .done = [heard](const ApplyEnd& end) { heard->promise.set_value(end); }};
  }

  ApplyEnd Run(const StartApplyEvent& event,
               const std::shared_ptr<Heard>& heard = std::make_shared<Heard>()) {
    KVASIR_EXPECT_OK(dispatcher_->Apply("d", event, std::nullopt, Listen(heard)));
    return heard->end.get();
  }

  const fs::path directory_;
  const SystemClock clock_;
  FakeWorkers workers_;
  std::unique_ptr<FileStore> store_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_F(DispatcherTest, AppliesAndReportsEachStep) {
  const auto heard = std::make_shared<Heard>();
  const ApplyEnd end = Run(Apply("plan"), heard);
  KVASIR_ASSERT_OK(end.status);
  ASSERT_TRUE(end.view.record.serving.has_value());
  EXPECT_EQ(end.view.record.serving->epoch, Epoch(1));
  EXPECT_GT(end.view.record.update_wall_ms, 0);
  std::string told;
  for (const ApplyProgress& progress : heard->progress) {
    told += progress.kind == ReportKind::kPhase ? std::string(ApplyPhaseName(progress.phase)) + " "
            : progress.kind == ReportKind::kPrepared
                ? absl::StrFormat("prepared:%s:%d ", progress.worker_address,
                                  progress.prepared.measurements_size())
                : absl::StrFormat("committed:%s ", progress.worker_address);
  }
  EXPECT_EQ(
      told,
      "querying preparing prepared:node-a:1:1 prepared:node-b:1:1 renewing committing committed:node-b:1 "
      "committed:node-a:1 cleaning ");
  EXPECT_EQ(workers_.StateOf("d", "node-a:1").running, (std::optional<PlanKey>{{Epoch(1), "plan"}}));
}

TEST_F(DispatcherTest, ASecondPlanTakesTheNextEpochAndADeleteForgetsIt) {
  KVASIR_ASSERT_OK(Run(Apply("one")).status);
  EXPECT_EQ(Run(Apply("two")).view.record.serving->epoch, Epoch(2));
  const auto heard = std::make_shared<Heard>();
  KVASIR_ASSERT_OK(dispatcher_->Delete("d", 0, Listen(heard)));
  KVASIR_EXPECT_OK(heard->end.get().status);
  EXPECT_FALSE(workers_.StateOf("d", "node-b:1").running.has_value());
  ASSERT_TRUE(dispatcher_->WaitIdle(10'000));
  EXPECT_EQ(ReasonOf(dispatcher_->Get("d").status()), reason::kDeploymentUnknown);
  // The epoch is remembered beyond the deployment.
  EXPECT_EQ(Run(Apply("three")).view.record.serving->epoch, Epoch(4));
}

TEST_F(DispatcherTest, OneAtATimeExceptTheSameRequest) {
  workers_.Hold(CallKind::kPrepare);
  const auto first = std::make_shared<Heard>();
  const auto joined = std::make_shared<Heard>();
  const auto again = std::make_shared<Heard>();
  KVASIR_ASSERT_OK(dispatcher_->Apply("d", Apply("plan", "r1"), std::nullopt, Listen(first)));
  workers_.WaitFor(CallKind::kPrepare);
  EXPECT_EQ(ReasonOf(dispatcher_->Apply("d", Apply("plan"), std::nullopt, {})), reason::kApplyInProgress);
  EXPECT_EQ(ReasonOf(dispatcher_->Delete("d", 0, {})), reason::kApplyInProgress);
  KVASIR_EXPECT_OK(dispatcher_->Apply("d", Apply("plan", "r1"), std::nullopt, Listen(joined)));
  EXPECT_EQ(dispatcher_->Get("d")->phase, ApplyPhase::kPreparing);
  workers_.Release();
  KVASIR_EXPECT_OK(first->end.get().status);
  KVASIR_EXPECT_OK(joined->end.get().status);
  ASSERT_TRUE(dispatcher_->WaitIdle(10'000));
  KVASIR_ASSERT_OK(dispatcher_->Apply("d", Apply("plan", "r1"), std::nullopt, Listen(again)));
  const ApplyEnd end = again->end.get();
  KVASIR_EXPECT_OK(end.status);
  EXPECT_EQ(end.view.record.serving->epoch, Epoch(1)) << "a repeated request applies nothing again";
}

TEST_F(DispatcherTest, TwoDeploymentsDoNotWaitForEachOther) {
  workers_.Hold(CallKind::kPrepare);
  const auto one = std::make_shared<Heard>();
  const auto two = std::make_shared<Heard>();
  KVASIR_ASSERT_OK(dispatcher_->Apply("one", Apply("plan"), std::nullopt, Listen(one)));
  KVASIR_ASSERT_OK(dispatcher_->Apply("two", Apply("plan"), std::nullopt, Listen(two)));
  workers_.Release();
  KVASIR_EXPECT_OK(one->end.get().status);
  KVASIR_EXPECT_OK(two->end.get().status);
}

TEST_F(DispatcherTest, AFailureIsTypedAndTheNextApplySucceeds) {
  workers_.SetFault([](const WorkerCall& call) {
    const bool out = call.kind == CallKind::kPrepare && call.target.address == "node-b:1";
    return out ? MakeError({.code = absl::StatusCode::kResourceExhausted,
                            .reason = reason::kOutOfMemory,
                            .message = "short by 1 GiB"})
               : absl::OkStatus();
  });
  const ApplyEnd end = Run(Apply("plan"));
  EXPECT_EQ(ReasonOf(end.status), reason::kOutOfMemory);
  EXPECT_EQ(end.view.record.last_error.reason, reason::kOutOfMemory);
  EXPECT_FALSE(workers_.StateOf("d", "node-a:1").pending.has_value());
  ASSERT_TRUE(dispatcher_->WaitIdle(10'000));
  workers_.SetFault(nullptr);
  KVASIR_EXPECT_OK(Run(Apply("plan")).status);
}

TEST_F(DispatcherTest, AStopTellsThoseWhoWaitAndRemembersHowFarItCame) {
  workers_.Hold(CallKind::kPrepare);
  const auto heard = std::make_shared<Heard>();
  KVASIR_ASSERT_OK(dispatcher_->Apply("d", Apply("plan"), std::nullopt, Listen(heard)));
  workers_.WaitFor(CallKind::kPrepare);
  dispatcher_->Stop();
  EXPECT_EQ(ReasonOf(heard->end.get().status), reason::kServerStopping);
  const auto record = store_->Get("d");
  KVASIR_ASSERT_OK(record);
  EXPECT_EQ((*record)->pending->phase, PendingPhase::kPreparing);
  EXPECT_EQ(ReasonOf(dispatcher_->Apply("d", Apply("plan"), std::nullopt, {})), reason::kServerStopping);
}

TEST_F(DispatcherTest, WhatAStoppedPlannerLeftIsTakenUp) {
  DeploymentRecord record{.name = "d", .max_epoch = Epoch(7)};
  record.pending =
      PendingApply{.epoch = Epoch(7), .phase = PendingPhase::kCommitting, .spec = Apply("plan").spec};
  KVASIR_ASSERT_OK(store_->Put(record));
  KVASIR_ASSERT_OK(dispatcher_->Recover());
  ASSERT_TRUE(dispatcher_->WaitIdle(20'000));
  const auto view = dispatcher_->Get("d");
  KVASIR_ASSERT_OK(view);
  EXPECT_EQ(view->record.serving->epoch, Epoch(7));
  EXPECT_EQ(workers_.StateOf("d", "node-b:1").running, (std::optional<PlanKey>{{Epoch(7), "plan"}}));
}

TEST_F(DispatcherTest, AnUnfinishedRecordIsTakenUpBeforeAnythingElse) {
  DeploymentRecord record{.name = "d", .max_epoch = Epoch(7)};
  record.pending =
      PendingApply{.epoch = Epoch(7), .phase = PendingPhase::kPreparing, .spec = Apply("plan").spec};
  KVASIR_ASSERT_OK(store_->Put(record));
  EXPECT_EQ(ReasonOf(dispatcher_->Apply("d", Apply("next"), std::nullopt, {})), reason::kApplyInProgress);
  ASSERT_TRUE(dispatcher_->WaitIdle(20'000));
  EXPECT_EQ(Run(Apply("next")).view.record.serving->epoch, Epoch(8));
}

TEST_F(DispatcherTest, ADamagedRecordStopsTheApplyAndNamesTheFile) {
  KVASIR_ASSERT_OK(store_->Put({.name = "d"}));
  std::ofstream(directory_ / "d.deployment", std::ios::app) << "x";
  EXPECT_EQ(ReasonOf(dispatcher_->Apply("d", Apply("plan"), std::nullopt, {})), reason::kStoreCorrupt);
  EXPECT_EQ(ReasonOf(dispatcher_->Recover()), reason::kStoreCorrupt);
}

}  // namespace
}  // namespace kvasir
