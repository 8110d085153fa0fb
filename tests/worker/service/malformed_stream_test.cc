// Decode streams that are used wrongly, not read, or abandoned: nothing goes on running for them.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "tests/testing/matchers.h"
#include "tests/worker/service/shared_rig.h"
#include "tests/worker/service/worker_rig.h"

namespace kvasir {
namespace {

using testing::Call;
using testing::DecodeAllOf;
using testing::DecodeResult;
using testing::JoinMessage;
using testing::RigOptions;
using testing::RigPlan;
using testing::SharedRig;
using testing::StatusOfCall;
using testing::WorkerRig;
using Stub = worker::v1::WorkerService::Stub;
using Code = absl::StatusCode;
namespace wire = worker::v1;

// Sequences that run on rank 0, once they are none or ten seconds have passed.
std::int32_t RunningSoon(WorkerRig& rig) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::int32_t running = 1;
  while (running > 0 && std::chrono::steady_clock::now() < deadline) {
    const auto state = Call(*rig.at(0).stub, &Stub::GetWorkerState, wire::GetWorkerStateRequest());
    EXPECT_TRUE(state.ok());
    if (!state.ok()) return -1;
    running = state->deployments(0).sequence_count();
  }
  return running;
}

TEST(MalformedStreamTest, ATagThatIsOpenAlreadyIsRefused) {
  grpc::ClientContext context;
  const auto stream = SharedRig().at(0).stub->Decode(&context);
  ASSERT_TRUE(stream->Write(JoinMessage(1, {1, 2, 3}, 90, true)));
  ASSERT_TRUE(stream->Write(JoinMessage(1, {1, 2, 3}, 5, true)));
  wire::DecodeResponse response;
  bool refused = false;
  bool finished = false;
  stream->WritesDone();
  while (stream->Read(&response)) {
    refused = refused || response.error().reason() == reason::kDuplicateItem;
    finished = finished || response.has_finished();
  }
  KVASIR_EXPECT_OK(StatusOfCall(stream->Finish()));
  EXPECT_TRUE(refused);
  EXPECT_TRUE(finished);
}

TEST(MalformedStreamTest, CancellingAnUnknownTagIsIgnored) {
  wire::DecodeRequest cancel;
  cancel.mutable_cancel()->set_tag(99);
  const DecodeResult result = DecodeAllOf(*SharedRig().at(0).stub, {cancel, JoinMessage(1, {1}, 5, true)});
  KVASIR_EXPECT_OK(result.status);
  EXPECT_TRUE(result.requests.at(1).finished);
}

TEST(MalformedStreamTest, AMessageWithoutAnActionEndsTheStream) {
  const DecodeResult result = DecodeAllOf(*SharedRig().at(0).stub, {wire::DecodeRequest()});
  EXPECT_EQ(ErrorOf(result.status).reason, reason::kMissingField);
  EXPECT_EQ(ErrorOf(result.status).field, "action");
}

TEST(MalformedStreamTest, AFollowerNamesTheLeader) {
  WorkerRig& rig = SharedRig();
  const DecodeResult result = DecodeAllOf(*rig.at(1).stub, {JoinMessage(1, {1}, 5, true)});
  EXPECT_EQ(result.status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(ErrorOf(result.status).reason, reason::kNotLeader);
  EXPECT_EQ(ErrorOf(result.status).metadata.at("leader_address"), rig.at(0).address());
}

TEST(MalformedStreamTest, DecodeBeforeCommitIsRefused) {
  WorkerRig rig(RigOptions{.workers = 1});
  const Plan plan = RigPlan(1);
  for (const absl::Status& status : rig.PrepareAll(plan, 1)) KVASIR_ASSERT_OK(status);
  const DecodeResult early = DecodeAllOf(*rig.at(0).stub, {JoinMessage(1, {1}, 5, true)});
  EXPECT_EQ(early.requests.at(1).error.reason(), reason::kNotRunning);
  KVASIR_ASSERT_OK(rig.CommitAll(plan, 1));
  EXPECT_TRUE(DecodeAllOf(*rig.at(0).stub, {JoinMessage(1, {1}, 5, true)}).requests.at(1).finished);
}

TEST(MalformedStreamTest, SpeculationWithoutADraftIsRefused) {
  WorkerRig rig(RigOptions{.workers = 1});
  KVASIR_ASSERT_OK(rig.Apply(RigPlan(1, 0), 1));
  const DecodeResult result =
      DecodeAllOf(*rig.at(0).stub, {JoinMessage(1, {1}, 5, true), JoinMessage(2, {1}, 5, false)});
  EXPECT_EQ(result.requests.at(1).error.reason(), reason::kConflictingFields);
  EXPECT_EQ(result.requests.at(1).error.field(), "speculate");
  EXPECT_TRUE(result.requests.at(2).finished);
}

// However many bad requests a client sends, their answers wait in the stream's bounded queue.
TEST(MalformedStreamTest, AnswersThatNobodyReadsEndTheStream) {
  WorkerRig rig(RigOptions{.workers = 1, .stream_queue_max = 100});
  KVASIR_ASSERT_OK(rig.Apply(RigPlan(1), 1));
  const auto stub = testing::NarrowStub(rig.at(0).address());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stream = stub->Decode(&context);
  for (int i = 0; i < 2000 && stream->Write(JoinMessage(1, {}, 5, true)); ++i) {
  }
  wire::DecodeResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(ErrorOf(StatusOfCall(stream->Finish())).reason, reason::kClientTooSlow);
}

TEST(MalformedStreamTest, ACallsDeadlineLeavesNothingRunning) {
  WorkerRig& rig = SharedRig();
  const DecodeResult cut =
      DecodeAllOf(*rig.at(0).stub, {JoinMessage(1, {1, 2, 3}, 90, true)}, std::chrono::milliseconds(1));
  EXPECT_EQ(cut.status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(RunningSoon(rig), 0);
}

TEST(MalformedStreamTest, AClientThatVanishesLeavesNothingRunning) {
  WorkerRig& rig = SharedRig();
  {
    grpc::ClientContext context;
    const auto stream = rig.at(0).stub->Decode(&context);
    ASSERT_TRUE(stream->Write(JoinMessage(1, {1, 2, 3}, 90, true)));
    wire::DecodeResponse response;
    ASSERT_TRUE(stream->Read(&response));
    context.TryCancel();
    (void)stream->Finish();
  }
  EXPECT_EQ(RunningSoon(rig), 0);
}

}  // namespace
}  // namespace kvasir
