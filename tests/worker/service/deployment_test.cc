// Two workers, one deployment: prepare, commit, decode, replace, release, and what happens when one of them
// goes.
#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/plan/plan_text.h"
#include "tests/testing/matchers.h"
#include "tests/worker/service/worker_rig.h"

namespace kvasir {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Call;
using testing::DecodeAllOf;
using testing::DecodeResult;
using testing::JoinMessage;
using testing::kDeployment;
using testing::RigOptions;
using testing::RigPlan;
using testing::WorkerRig;
using Stub = worker::v1::WorkerService::Stub;
namespace wire = worker::v1;

std::vector<wire::DecodeRequest> Prompts(bool speculate) {
  return {JoinMessage(1, {1, 2, 3}, 20, speculate), JoinMessage(2, {4}, 17, speculate),
          JoinMessage(3, {5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, 24, speculate)};
}

void ExpectAllFinished(const DecodeResult& result, std::size_t count) {
  KVASIR_EXPECT_OK(result.status);
  ASSERT_EQ(result.requests.size(), count);
  for (const auto& [tag, request] : result.requests) {
    EXPECT_TRUE(request.finished) << "tag " << tag << ": " << request.error.ShortDebugString();
    EXPECT_EQ(static_cast<std::int64_t>(request.tokens.size()), request.finish.emitted_tokens());
  }
}

class DeploymentTest : public ::testing::TestWithParam<RigOptions> {
 protected:
  DeploymentTest() : rig_(GetParam()) {}
  [[nodiscard]] Plan plan(std::int64_t draft_tokens = 3) const {
    return RigPlan(static_cast<std::int64_t>(GetParam().workers * GetParam().ranks_per_worker), draft_tokens);
  }
  WorkerRig rig_;
};

TEST_P(DeploymentTest, SpeculationGivesTheSameTokensAsPlainDecoding) {
  KVASIR_ASSERT_OK(rig_.Apply(plan(), 1));
  const DecodeResult plain = DecodeAllOf(*rig_.at(0).stub, Prompts(false));
  const DecodeResult speculative = DecodeAllOf(*rig_.at(0).stub, Prompts(true));
  ExpectAllFinished(plain, 3);
  ExpectAllFinished(speculative, 3);
  std::int64_t drafted = 0;
  for (const auto& [tag, request] : plain.requests) {
    EXPECT_EQ(request.tokens, speculative.requests.at(tag).tokens) << tag;
    EXPECT_EQ(request.finish.drafted_tokens(), 0);
    drafted += speculative.requests.at(tag).finish.drafted_tokens();
  }
  EXPECT_GT(drafted, 0);
  KVASIR_EXPECT_OK(rig_.ReleaseAll(2));
  EXPECT_TRUE(rig_.BecomesEmpty());
}

wire::DecodeRequest Sampled(wire::DecodeRequest request, std::uint64_t seed) {
  wire::SamplingParameters& sampling = *request.mutable_join()->mutable_sampling();
  sampling.set_temperature(1.5);
  sampling.set_top_k(40);
  sampling.set_top_p(0.98);
  sampling.set_logprobs(true);
  if (seed > 0) sampling.set_seed(seed);
  return request;
}

TEST_P(DeploymentTest, ASeedGivesTheSameTokensInAnyCompany) {
  KVASIR_ASSERT_OK(rig_.Apply(plan(), 1));
  for (const bool speculate : {false, true}) {
    std::vector<wire::DecodeRequest> requests = Prompts(speculate);
    for (wire::DecodeRequest& request : requests) request = Sampled(request, 11);
    requests.push_back(JoinMessage(4, {1, 2, 3}, 20, true));
    requests.push_back(Sampled(JoinMessage(5, {1, 2, 3}, 20, speculate), 0));
    requests.back().mutable_join()->set_wait(true);  // four run at a time
    const DecodeResult together = DecodeAllOf(*rig_.at(0).stub, requests);
    ExpectAllFinished(together, 5);
    for (const std::int64_t tag : {1, 2, 3, 5}) {
      const testing::Decoded& want = together.requests.at(tag);
      wire::DecodeRequest again = requests[static_cast<std::size_t>(tag - 1)];
      again.mutable_join()->mutable_sampling()->set_seed(want.seed);  // tag 5: the one that the worker picked
      const testing::Decoded got = DecodeAllOf(*rig_.at(0).stub, {again}).requests.at(tag);
      EXPECT_EQ(got.tokens, want.tokens) << tag;
      EXPECT_EQ(got.logprobs, want.logprobs) << tag;
      EXPECT_EQ(want.logprobs.size(), want.tokens.size());
      const wire::FinishedEvent& finish = want.finish;
      // The prefill's token, and of each target step the accepted ones and its own, which the limit may cut
      // off.
      const std::int64_t told = finish.accepted_tokens() + finish.target_step_count();
      EXPECT_LE(finish.emitted_tokens(), 1 + told);
      EXPECT_GE(finish.emitted_tokens(), told);
      EXPECT_EQ(finish.prefill_step_count(), tag == 3 ? 2 : 1);
      EXPECT_LE(finish.accepted_tokens(), finish.drafted_tokens());
    }
    EXPECT_NE(together.requests.at(5).seed, 0U);
    EXPECT_NE(together.requests.at(1).tokens, together.requests.at(4).tokens);
    EXPECT_NE(together.requests.at(1).tokens, together.requests.at(5).tokens);
    EXPECT_TRUE(together.requests.at(4).logprobs.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeploymentTest,
                         ::testing::Values(RigOptions{.workers = 1, .ranks_per_worker = 1},
                                           RigOptions{.workers = 1, .ranks_per_worker = 2},
                                           RigOptions{.workers = 2, .ranks_per_worker = 1},
                                           RigOptions{.workers = 2, .ranks_per_worker = 2}),
                         [](const auto& tested) {
                           return std::to_string(tested.param.workers) + "Workers" +
                                  std::to_string(tested.param.ranks_per_worker) + "Ranks";
                         });

TEST(TwoWorkersTest, PrepareReportsMeasurementsAndIsIdempotent) {
  WorkerRig rig;
  const Plan plan = RigPlan(2);
  for (const absl::Status& status : rig.PrepareAll(plan, 1)) KVASIR_ASSERT_OK(status);
  const auto again = Call(*rig.at(1).stub, &Stub::PreparePlan, rig.PrepareRequest(1, plan, 1));
  KVASIR_ASSERT_OK(again);
  ASSERT_EQ(again->measurements_size(), 1);
  EXPECT_EQ(again->measurements(0).rank(), 1);
  EXPECT_EQ(again->measurements(0).arena_bytes(), plan.arena_bytes.value());
  EXPECT_EQ(again->measurements(0).planned_arena_bytes(), plan.arena_bytes.value());
  EXPECT_EQ(again->measurements(0).graph_count(), static_cast<std::int32_t>(plan.graphs.size()));
  EXPECT_GT(again->measurements(0).weight_bytes(), 0);
  EXPECT_FALSE(rig.at(0).IsEmpty());
}

TEST(TwoWorkersTest, ARepetitionWithOtherRanksOrWeightsIsRefused) {
  WorkerRig rig;
  const Plan plan = RigPlan(2);
  for (const absl::Status& status : rig.PrepareAll(plan, 1)) KVASIR_ASSERT_OK(status);
  wire::PreparePlanRequest request = rig.PrepareRequest(1, plan, 1);
  request.mutable_weights()->set_synthetic_seed(2);
  EXPECT_EQ(ErrorOf(Call(*rig.at(1).stub, &Stub::PreparePlan, request).status()).reason, reason::kEpochTaken);
}

TEST(TwoWorkersTest, AnExpiredLeaseFreesBothWorkers) {
  WorkerRig rig;
  const Plan plan = RigPlan(2);
  for (const absl::Status& status : rig.PrepareAll(
           plan, 1, [](wire::PreparePlanRequest& request) { request.mutable_lease()->set_seconds(1); })) {
    KVASIR_ASSERT_OK(status);
  }
  EXPECT_FALSE(rig.at(0).IsEmpty());
  EXPECT_TRUE(rig.BecomesEmpty());
  const absl::Status late = rig.CommitAll(plan, 1);
  EXPECT_EQ(ErrorOf(late).reason, reason::kNotPrepared);
  KVASIR_EXPECT_OK(rig.Apply(plan, 2));
}

TEST(TwoWorkersTest, AbortFreesBothWorkersAndTheEpochIsOver) {
  WorkerRig rig;
  const Plan plan = RigPlan(2);
  for (const absl::Status& status : rig.PrepareAll(plan, 1)) KVASIR_ASSERT_OK(status);
  wire::AbortPlanRequest abort;
  abort.set_deployment(kDeployment);
  abort.set_epoch(1);
  abort.set_plan_id(PlanId(PlanToText(plan)));
  // The other worker notices that its peer went.
  KVASIR_ASSERT_OK(Call(*rig.at(0).stub, &Stub::AbortPlan, abort));
  EXPECT_TRUE(rig.BecomesEmpty());
  KVASIR_ASSERT_OK(Call(*rig.at(1).stub, &Stub::AbortPlan, abort));
  EXPECT_EQ(ErrorOf(rig.PrepareAll(plan, 1)[0]).reason, reason::kEpochEnded);
}

TEST(TwoWorkersTest, ADisagreementIsNamedBeforeAnythingIsAllocated) {
  WorkerRig rig(RigOptions{.extra_facts = [](std::size_t worker) {
    return RankFacts{{"library.nccl", worker == 1 ? "2.27.3" : "2.28.9"}};
  }});
  const auto start = steady_clock::now();
  for (const absl::Status& status : rig.PrepareAll(RigPlan(2), 1)) {
    const TypedError error = ErrorOf(status);
    EXPECT_EQ(error.code, absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(error.reason, reason::kRanksDisagree) << status;
    EXPECT_EQ(error.metadata.at("rank"), "1");
    EXPECT_EQ(error.metadata.at("fact"), "library.nccl");
    EXPECT_EQ(error.metadata.at("value"), "2.27.3");
    EXPECT_EQ(error.metadata.at("others"), "2.28.9");
  }
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(rig.at(0).IsEmpty());
  EXPECT_TRUE(rig.at(1).IsEmpty());
}

TEST(TwoWorkersTest, TooLittleMemoryIsAShortfallAndTheOtherWorkerFreesToo) {
  WorkerRig rig(RigOptions{.memory = Bytes(1 << 10)});
  for (const absl::Status& status : rig.PrepareAll(RigPlan(2), 1)) {
    EXPECT_FALSE(status.ok());
    if (absl::IsResourceExhausted(status)) {
      EXPECT_EQ(ErrorOf(status).reason, reason::kOutOfMemory);
      EXPECT_GT(std::stoll(ErrorOf(status).metadata.at("shortfall_bytes")), 0);
    }
  }
  EXPECT_TRUE(rig.BecomesEmpty());
}

TEST(TwoWorkersTest, AMissingWorkerIsAnErrorWithinTheTimeout) {
  WorkerRig rig;
  const Plan plan = RigPlan(2);
  wire::PreparePlanRequest request = rig.PrepareRequest(0, plan, 1);
  request.mutable_comm_timeout()->set_seconds(0);
  request.mutable_comm_timeout()->set_nanos(300'000'000);
  const absl::Status status = Call(*rig.at(0).stub, &Stub::PreparePlan, request).status();
  EXPECT_EQ(ErrorOf(status).reason, reason::kDeadlineExpired) << status;
  EXPECT_EQ(ErrorOf(status).metadata.at("missing_ranks"), "1");
  EXPECT_TRUE(rig.at(0).IsEmpty());
}

TEST(TwoWorkersTest, ANewPlanServesWhileTheOldOneFinishes) {
  WorkerRig rig;
  const Plan old_plan = RigPlan(2, 3);
  const Plan new_plan = RigPlan(2, 2);
  KVASIR_ASSERT_OK(rig.Apply(old_plan, 1));
  grpc::ClientContext context;
  const auto stream = rig.at(0).stub->Decode(&context);
  ASSERT_TRUE(stream->Write(JoinMessage(1, {1, 2, 3}, 90, false)));
  wire::DecodeResponse response;
  DecodeResult result;
  ASSERT_TRUE(stream->Read(&response));
  testing::Take(response, result);
  EXPECT_EQ(result.requests[1].epoch, 1);
  KVASIR_ASSERT_OK(rig.Apply(new_plan, 2));
  ASSERT_TRUE(stream->Write(JoinMessage(2, {1, 2, 3}, 90, false)));
  stream->WritesDone();
  while (stream->Read(&response)) testing::Take(response, result);
  KVASIR_EXPECT_OK(testing::StatusOfCall(stream->Finish()));
  EXPECT_TRUE(result.requests[1].finished) << result.requests[1].error.ShortDebugString();
  EXPECT_TRUE(result.requests[2].finished) << result.requests[2].error.ShortDebugString();
  EXPECT_EQ(result.requests[2].epoch, 2);
  EXPECT_EQ(result.requests[1].tokens, result.requests[2].tokens) << "one model, one weight seed, one answer";
}

TEST(TwoWorkersTest, ReleaseWithoutTimeEndsRequestsWithPlanRetired) {
  WorkerRig rig;
  KVASIR_ASSERT_OK(rig.Apply(RigPlan(2), 1));
  grpc::ClientContext context;
  const auto stream = rig.at(0).stub->Decode(&context);
  ASSERT_TRUE(stream->Write(JoinMessage(1, {1, 2, 3}, 90, false)));
  wire::DecodeResponse response;
  DecodeResult result;
  ASSERT_TRUE(stream->Read(&response));
  testing::Take(response, result);
  KVASIR_ASSERT_OK(rig.ReleaseAll(2));
  stream->WritesDone();
  while (stream->Read(&response)) testing::Take(response, result);
  KVASIR_EXPECT_OK(testing::StatusOfCall(stream->Finish()));
  EXPECT_TRUE(result.requests[1].finished || result.requests[1].error.reason() == reason::kPlanRetired)
      << result.requests[1].error.ShortDebugString();
  EXPECT_TRUE(rig.BecomesEmpty());
}

TEST(TwoWorkersTest, ALostFollowerEndsStreamsFreesTheLeaderAndTheNextApplySucceedsElsewhere) {
  WorkerRig rig;
  KVASIR_ASSERT_OK(rig.Apply(RigPlan(2), 1));
  grpc::ClientContext context;
  const auto stream = rig.at(0).stub->Decode(&context);
  for (std::int64_t tag = 1; tag <= 4; ++tag)
    ASSERT_TRUE(stream->Write(JoinMessage(tag, {1, 2, 3}, 90, true)));
  wire::DecodeResponse response;
  DecodeResult result;
  ASSERT_TRUE(stream->Read(&response));
  testing::Take(response, result);
  const auto start = steady_clock::now();
  rig.at(1).Kill();
  while (stream->Read(&response)) testing::Take(response, result);
  const absl::Status status = testing::StatusOfCall(stream->Finish());
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(15));
  EXPECT_EQ(ErrorOf(status).reason, reason::kRankLost) << status;
  for (const auto& [tag, request] : result.requests) {
    EXPECT_TRUE(request.finished || request.error.reason() == reason::kRankLost)
        << tag << ": " << request.error.ShortDebugString();
  }
  EXPECT_TRUE(rig.BecomesEmpty());
  wire::GetWorkerStateRequest query;
  const auto state = Call(*rig.at(0).stub, &Stub::GetWorkerState, query);
  KVASIR_ASSERT_OK(state);
  EXPECT_NE(state->deployments(0).failure().find(reason::kRankLost), std::string::npos);
  const DecodeResult refused = DecodeAllOf(*rig.at(0).stub, {JoinMessage(1, {1}, 5, false)});
  EXPECT_EQ(refused.requests.at(1).error.reason(), reason::kNotRunning);

  KVASIR_ASSERT_OK(rig.ReleaseAll(2));
  const Plan alone = RigPlan(1);
  KVASIR_ASSERT_OK(Call(*rig.at(0).stub, &Stub::PreparePlan, rig.PrepareRequest(0, alone, 3)));
  KVASIR_ASSERT_OK(Call(*rig.at(0).stub, &Stub::CommitPlan, rig.CommitRequest(alone, 3)));
  ExpectAllFinished(DecodeAllOf(*rig.at(0).stub, Prompts(true)), 3);
}

TEST(TwoWorkersTest, AFollowerWhoseLeaderDiedFrees) {
  WorkerRig rig;
  KVASIR_ASSERT_OK(rig.Apply(RigPlan(2), 1));
  rig.at(0).Kill();
  EXPECT_TRUE(rig.BecomesEmpty());
  const auto state = Call(*rig.at(1).stub, &Stub::GetWorkerState, wire::GetWorkerStateRequest());
  KVASIR_ASSERT_OK(state);
  EXPECT_FALSE(state->deployments(0).has_running());
  EXPECT_NE(state->deployments(0).failure(), "");
}

TEST(TwoWorkersTest, ADrainingServerFinishesItsStreamsAndRefusesNewRequests) {
  WorkerRig rig;
  KVASIR_ASSERT_OK(rig.Apply(RigPlan(2), 1));
  grpc::ClientContext context;
  const auto stream = rig.at(0).stub->Decode(&context);
  ASSERT_TRUE(stream->Write(JoinMessage(1, {1, 2, 3}, 90, true)));
  wire::DecodeResponse response;
  DecodeResult result;
  ASSERT_TRUE(stream->Read(&response));
  testing::Take(response, result);
  rig.at(0).service->Drain();
  EXPECT_EQ(DecodeAllOf(*rig.at(0).stub, {JoinMessage(1, {1}, 5, false)}).status.code(),
            absl::StatusCode::kUnavailable);
  while (stream->Read(&response)) testing::Take(response, result);
  EXPECT_EQ(ErrorOf(testing::StatusOfCall(stream->Finish())).reason, reason::kServerStopping);
  EXPECT_TRUE(result.requests[1].finished);
}

TEST(TwoWorkersTest, AClientThatDoesNotReadLosesItsStreamAndHoldsNobodyUp) {
  // One request has at most 92 events, so a client that reads can never fill the queue, however busy the
  // machine is; three that are not read have 276.
  WorkerRig rig(RigOptions{.workers = 1, .stream_queue_max = 100});
  KVASIR_ASSERT_OK(rig.Apply(RigPlan(1), 1));
  const auto stub = testing::NarrowStub(rig.at(0).address());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stream = stub->Decode(&context);
  for (std::int64_t tag = 1; tag <= 3; ++tag)
    ASSERT_TRUE(stream->Write(JoinMessage(tag, {1, 2, 3}, 90, false)));
  ExpectAllFinished(DecodeAllOf(*rig.at(0).stub, {JoinMessage(1, {1, 2, 3}, 90, false)}), 1);
  wire::DecodeResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(ErrorOf(testing::StatusOfCall(stream->Finish())).reason, reason::kClientTooSlow);
  const DecodeResult after = DecodeAllOf(*rig.at(0).stub, {JoinMessage(1, {1, 2, 3}, 9, true)});
  ExpectAllFinished(after, 1);
}

TEST(TwoWorkersTest, PreflightMeasuresComparesAndFrees) {
  WorkerRig rig;
  const Plan plan = RigPlan(2);
  std::vector<absl::StatusOr<wire::PreparePlanResponse>> responses(2, absl::UnknownError("not called"));
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (std::size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      wire::PreparePlanRequest request = rig.PrepareRequest(i, plan, 1);
      request.mutable_preflight()->set_replays_per_graph(2);
      responses[i] = Call(*rig.at(i).stub, &Stub::PreparePlan, request);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& response : responses) {
    KVASIR_ASSERT_OK(response);
    EXPECT_EQ(response->measurements(0).arena_bytes(), plan.arena_bytes.value());
    EXPECT_EQ(response->preflight().graphs_size(), static_cast<int>(plan.graphs.size()));
    EXPECT_EQ(response->preflight().comparisons_size(), 4) << "decode, verify, draft context, draft block";
    for (const auto& compared : response->preflight().comparisons()) {
      EXPECT_TRUE(compared.replay_equals_eager()) << compared.ShortDebugString();
      EXPECT_LE(compared.error_parts_per_billion(), compared.tolerance_parts_per_billion());
    }
    for (const auto& graph : response->preflight().graphs()) {
      EXPECT_EQ(graph.replay_count(), 2);
      EXPECT_GT(graph.shortest().nanos() + graph.shortest().seconds(), 0) << graph.ShortDebugString();
    }
    EXPECT_GT(response->preflight().collective_bytes(), 0);
  }
  EXPECT_TRUE(rig.at(0).IsEmpty());
  EXPECT_EQ(ErrorOf(rig.CommitAll(plan, 1)).reason, reason::kNotPrepared);
}

}  // namespace
}  // namespace kvasir
