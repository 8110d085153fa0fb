// Requests that are wrong, one per case: each gets its documented code, reason and field, and a good request
// right after succeeds. The rig has a running deployment, so that steps and streams have something to be
// wrong about.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/models/model_text.h"
#include "common/plan/plan_text.h"
#include "tests/testing/matchers.h"
#include "tests/worker/service/worker_rig.h"

namespace kvasir {
namespace {

using testing::Call;
using testing::DecodeAllOf;
using testing::DecodeResult;
using testing::JoinMessage;
using testing::kDeployment;
using testing::RigOptions;
using testing::RigPlan;
using testing::StatusOfCall;
using testing::WorkerRig;
using Stub = worker::v1::WorkerService::Stub;
using Code = absl::StatusCode;
namespace wire = worker::v1;

constexpr std::int64_t kRunningEpoch = 5;

// Worker 0 leads and worker 1 follows a running plan of two ranks.
WorkerRig& SharedRig() {
  static auto* rig = [] {
    auto* made = new WorkerRig();
    KVASIR_EXPECT_OK(made->Apply(RigPlan(2), kRunningEpoch));
    return made;
  }();
  return *rig;
}

struct Case {
  std::string name;
  std::function<absl::Status(WorkerRig&)> call;
  Code code;
  std::string reason;
  std::string field;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Case Prepare(std::string name, const std::function<void(wire::PreparePlanRequest&)>& change,
             std::string reason, std::string field, Code code = Code::kInvalidArgument) {
  return {std::move(name),
          [change](WorkerRig& rig) {
            wire::PreparePlanRequest request = rig.PrepareRequest(0, RigPlan(2, 2), kRunningEpoch + 1);
            change(request);
            return Call(*rig.at(0).stub, &Stub::PreparePlan, request).status();
          },
          code, std::move(reason), std::move(field)};
}

// Replaces the plan's text and its hash.
void SetPlanText(wire::PreparePlanRequest& request, const std::string& text) {
  request.set_plan_text(text);
  request.set_plan_id(PlanId(text));
}

std::vector<Case> PrepareCases() {
  using reason::kMissingField;
  using reason::kValueOutOfRange;
  using R = wire::PreparePlanRequest;
  const std::string a_hash(64, 'a');
  return {
      Prepare(
          "NoDeployment", [](R& r) { r.clear_deployment(); }, kMissingField, "deployment"),
      Prepare(
          "BadDeployment", [](R& r) { r.set_deployment("Has Spaces"); }, reason::kBadName, "deployment"),
      Prepare(
          "LongDeployment", [](R& r) { r.set_deployment(std::string(64, 'a')); }, reason::kBadName,
          "deployment"),
      Prepare(
          "ZeroEpoch", [](R& r) { r.set_epoch(0); }, kValueOutOfRange, "epoch"),
      Prepare(
          "NegativeEpoch", [](R& r) { r.set_epoch(-7); }, kValueOutOfRange, "epoch"),
      Prepare(
          "NoPlanId", [](R& r) { r.clear_plan_id(); }, kMissingField, "plan_id"),
      Prepare(
          "ShortPlanId", [](R& r) { r.set_plan_id("abc"); }, kValueOutOfRange, "plan_id"),
      Prepare(
          "WrongPlanHash", [a_hash](R& r) { r.set_plan_id(a_hash); }, reason::kPlanHashMismatch, "plan_id"),
      Prepare(
          "NoPlanText", [](R& r) { r.clear_plan_text(); }, kMissingField, "plan_text"),
      Prepare(
          "HugePlanText", [](R& r) { r.set_plan_text(std::string(kPlanTextBytesMax + 1, 'x')); },
          kValueOutOfRange, "plan_text"),
      Prepare(
          "PlanTextIsNoPlan", [](R& r) { SetPlanText(r, "hello\n"); }, reason::kPlanTextInvalid, "plan_text"),
      Prepare(
          "PlanTextCutOff", [](R& r) { SetPlanText(r, r.plan_text().substr(0, r.plan_text().size() / 2)); },
          reason::kPlanTextInvalid, "plan_text"),
      Prepare(
          "TamperedPlan",
          [](R& r) {
            Plan plan = RigPlan(2, 2);
            plan.parents += 1;
            SetPlanText(r, PlanToText(plan));
          },
          reason::kPlanInvalid, "plan_text"),
      Prepare(
          "TamperedPlanText", [](R& r) { r.set_plan_text(r.plan_text() + "\n"); }, reason::kPlanHashMismatch,
          "plan_id"),
      Prepare(
          "NoTargetModel", [](R& r) { r.clear_target_model_text(); }, kMissingField, "target_model_text"),
      Prepare(
          "TargetModelIsNoText", [](R& r) { r.set_target_model_text("{}"); }, reason::kModelTextInvalid,
          "target_model_text"),
      Prepare(
          "OtherTargetModel",
          [](R& r) {
            ModelDescription other = testing::SmallTarget();
            other.vocab += 8;
            r.set_target_model_text(ModelToText(other));
          },
          reason::kModelDigestMismatch, "target_model_text"),
      Prepare(
          "NoDraftModel", [](R& r) { r.clear_draft_model_text(); }, kMissingField, "draft_model_text"),
      Prepare(
          "TargetAsDraft", [](R& r) { r.set_draft_model_text(r.target_model_text()); },
          reason::kModelDigestMismatch, "draft_model_text"),
      Prepare(
          "NoWeights", [](R& r) { r.clear_weights(); }, kMissingField, "weights.source"),
      Prepare(
          "NegativeSeed", [](R& r) { r.mutable_weights()->set_synthetic_seed(-1); }, kValueOutOfRange,
          "weights.synthetic_seed"),
      Prepare(
          "NoTargetDirectory",
          [](R& r) { r.mutable_weights()->mutable_checkpoint()->set_draft_directory("d"); }, kMissingField,
          "weights.checkpoint.target_directory"),
      Prepare(
          "NoDraftDirectory",
          [](R& r) { r.mutable_weights()->mutable_checkpoint()->set_target_directory("t"); }, kMissingField,
          "weights.checkpoint.draft_directory"),
      Prepare(
          "DirectoryWithNul",
          [](R& r) {
            r.mutable_weights()->mutable_checkpoint()->set_target_directory(std::string("t\0", 2));
            r.mutable_weights()->mutable_checkpoint()->set_draft_directory("d");
          },
          reason::kBadName, "weights.checkpoint.target_directory"),
      Prepare(
          "LongDirectory",
          [](R& r) {
            r.mutable_weights()->mutable_checkpoint()->set_target_directory("t");
            r.mutable_weights()->mutable_checkpoint()->set_draft_directory(std::string(4097, 'd'));
          },
          reason::kBadName, "weights.checkpoint.draft_directory"),
      Prepare(
          "NoRanks", [](R& r) { r.clear_ranks(); }, kMissingField, "ranks"),
      Prepare(
          "RankBeyondThePlan", [](R& r) { r.set_ranks(0, 2); }, kValueOutOfRange, "ranks[0]"),
      Prepare(
          "RankTwice", [](R& r) { r.add_ranks(0); }, reason::kDuplicateItem, "ranks[1]"),
      Prepare(
          "MoreRanksThanPlaces",
          [](R& r) {
            r.add_ranks(1);
            *r.mutable_rank_map(1) = r.rank_map(0);
            r.mutable_rank_map(1)->set_rank(1);
          },
          reason::kRankCapacity, "", Code::kFailedPrecondition),
      Prepare(
          "RankMapTooShort", [](R& r) { r.mutable_rank_map()->RemoveLast(); }, reason::kRanksIncomplete,
          "rank_map"),
      Prepare(
          "RankMapOutOfOrder", [](R& r) { r.mutable_rank_map()->SwapElements(0, 1); },
          reason::kRanksIncomplete, "rank_map[0].rank"),
      Prepare(
          "RankMapWithoutPort", [](R& r) { r.mutable_rank_map(1)->mutable_comm_endpoint()->set_port(0); },
          reason::kBadAddress, "rank_map[1].comm_endpoint"),
      Prepare(
          "RankMapWithoutAddress", [](R& r) { r.mutable_rank_map(1)->clear_worker_address(); },
          reason::kBadAddress, "rank_map[1].worker_address"),
      Prepare(
          "RankElsewhereAtThisAddress",
          [](R& r) { r.mutable_rank_map(1)->set_worker_address(r.rank_map(0).worker_address()); },
          reason::kConflictingFields, "rank_map[1].worker_address"),
      Prepare(
          "NoLease", [](R& r) { r.clear_lease(); }, kMissingField, "lease"),
      Prepare(
          "NegativeLease", [](R& r) { r.mutable_lease()->set_seconds(-30); }, kValueOutOfRange, "lease"),
      Prepare(
          "AbsurdLease", [](R& r) { r.mutable_lease()->set_seconds(std::int64_t{1} << 60); },
          kValueOutOfRange, "lease"),
      Prepare(
          "ShortCommTimeout", [](R& r) { r.mutable_comm_timeout()->set_seconds(0); }, kValueOutOfRange,
          "comm_timeout"),
      Prepare(
          "UnknownMode", [](R& r) { r.set_mode(static_cast<wire::ApplyMode>(99)); }, reason::kUnknownValue,
          "mode"),
      Prepare(
          "TooManyReplays", [](R& r) { r.mutable_preflight()->set_replays_per_graph(5000); },
          kValueOutOfRange, "preflight.replays_per_graph"),
      Prepare(
          "StaleEpoch", [](R& r) { r.set_epoch(kRunningEpoch - 1); }, reason::kStaleEpoch, "",
          Code::kAborted),
      Prepare(
          "EpochOfAnotherPlan", [](R& r) { r.set_epoch(kRunningEpoch); }, reason::kEpochTaken, "",
          Code::kAborted),
  };
}

Case Step(std::string name, const std::function<void(wire::ExecuteStepRequest&)>& change, std::string reason,
          std::string field, Code code = Code::kInvalidArgument) {
  return {std::move(name),
          [change](WorkerRig& rig) {
            wire::ExecuteStepRequest request;
            request.set_deployment(kDeployment);
            wire::StepPlan& step = *request.mutable_step();
            step.set_epoch(kRunningEpoch);
            step.set_plan_id(PlanId(PlanToText(RigPlan(2))));
            step.set_kind(wire::STEP_KIND_PREFILL);
            wire::StepSequence& sequence = *step.add_sequences();
            sequence.set_limit_tokens(10);
            sequence.add_token_ids(1);
            sequence.set_last_chunk(true);
            sequence.add_pools()->add_block_ids(5);
            change(request);
            return Call(*rig.at(1).stub, &Stub::ExecuteStep, request).status();
          },
          code, std::move(reason), std::move(field)};
}

std::vector<Case> StepCases() {
  using reason::kMissingField;
  using reason::kValueOutOfRange;
  using R = wire::ExecuteStepRequest;
  return {
      Step(
          "StepOfNoDeployment", [](R& r) { r.clear_deployment(); }, kMissingField, "deployment"),
      Step(
          "StepWithoutStep", [](R& r) { r.clear_step(); }, kValueOutOfRange, "step.epoch"),
      Step(
          "StepOfUnknownDeployment", [](R& r) { r.set_deployment("other"); }, reason::kNotRunning, "",
          Code::kFailedPrecondition),
      Step(
          "StepOfAnotherEpoch", [](R& r) { r.mutable_step()->set_epoch(kRunningEpoch + 1); },
          reason::kNotRunning, "", Code::kFailedPrecondition),
      Step(
          "StepOfAnotherPlan", [](R& r) { r.mutable_step()->set_plan_id(std::string(64, 'b')); },
          reason::kNotRunning, "", Code::kFailedPrecondition),
      Step(
          "StepNumberAhead", [](R& r) { r.mutable_step()->set_step(1'000'000); }, reason::kStepOutOfOrder, "",
          Code::kFailedPrecondition),
      Step(
          "NegativeStepNumber", [](R& r) { r.mutable_step()->set_step(-1); }, kValueOutOfRange, "step.step"),
      Step(
          "UnknownStepKind", [](R& r) { r.mutable_step()->set_kind(static_cast<wire::StepKind>(9)); },
          reason::kUnknownValue, "step.kind"),
      Step(
          "NoSequences", [](R& r) { r.mutable_step()->clear_sequences(); }, kMissingField, "step.sequences"),
      Step(
          "NoTokens", [](R& r) { r.mutable_step()->mutable_sequences(0)->clear_token_ids(); }, kMissingField,
          "step.sequences[0].token_ids"),
      Step(
          "NegativeBlock",
          [](R& r) { r.mutable_step()->mutable_sequences(0)->mutable_pools(0)->set_block_ids(0, -1); },
          kValueOutOfRange, "step.sequences[0].pools[0].block_ids[0]"),
      Step(
          "NegativeCommitted", [](R& r) { r.mutable_step()->mutable_sequences(0)->set_committed_tokens(-1); },
          kValueOutOfRange, "step.sequences[0].committed_tokens"),
      Step(
          "NegativePending", [](R& r) { r.mutable_step()->mutable_sequences(0)->set_pending_tokens(-1); },
          kValueOutOfRange, "step.sequences[0].pending_tokens"),
      Step(
          "NegativeTopK",
          [](R& r) { r.mutable_step()->mutable_sequences(0)->mutable_sampling()->set_top_k(-1); },
          kValueOutOfRange, "step.sequences[0].sampling.top_k"),
      Step(
          "TemperatureIsNoNumber",
          [](R& r) { r.mutable_step()->mutable_sequences(0)->mutable_sampling()->set_temperature(NAN); },
          kValueOutOfRange, "step.sequences[0].sampling.temperature"),
      Step(
          "UnknownVerifyMethod",
          [](R& r) {
            r.mutable_step()->mutable_sequences(0)->mutable_sampling()->set_verify_method(
                static_cast<wire::VerifyMethod>(7));
          },
          reason::kUnknownValue, "step.sequences[0].sampling.verify_method"),
      Step(
          "AbsurdLimit",
          [](R& r) { r.mutable_step()->mutable_sequences(0)->set_limit_tokens(std::int64_t{1} << 60); },
          kValueOutOfRange, "step.sequences[0].limit_tokens"),
      Step(
          "ZeroParentIsTheNullParent", [](R& r) { r.mutable_step()->add_zero_parent_ids(0); },
          kValueOutOfRange, "step.zero_parent_ids[0]"),
  };
}

// A step with the right number and contents that the plan does not allow: the engine's own check. Reported
// per field by the engine, so only code and the leading field are compared.
TEST(MalformedStepTest, BlocksOutsideTheArenaAreRefusedAndNothingRuns) {
  WorkerRig rig;
  const Plan plan = RigPlan(2);
  KVASIR_ASSERT_OK(rig.Apply(plan, 1));
  wire::ExecuteStepRequest request;
  request.set_deployment(kDeployment);
  wire::StepPlan& step = *request.mutable_step();
  step.set_epoch(1);
  step.set_plan_id(PlanId(PlanToText(plan)));
  step.set_kind(wire::STEP_KIND_PREFILL);
  wire::StepSequence& sequence = *step.add_sequences();
  sequence.set_limit_tokens(10);
  sequence.add_token_ids(1);
  sequence.set_last_chunk(true);
  sequence.add_pools()->add_block_ids(std::int64_t{1} << 40);
  const absl::Status status = Call(*rig.at(1).stub, &Stub::ExecuteStep, request).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
  EXPECT_TRUE(ErrorOf(status).field.starts_with("step")) << ErrorOf(status).field;
  // The number was not used up, and no rank left the others.
  const DecodeResult good = DecodeAllOf(*rig.at(0).stub, {JoinMessage(1, {1, 2, 3}, 5, true)});
  KVASIR_EXPECT_OK(good.status);
  EXPECT_TRUE(good.requests.at(1).finished);
}

template <class Request, class Response>
Case Control(std::string name, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
             const std::function<void(Request&)>& change, std::string reason, std::string field,
             Code code = Code::kInvalidArgument) {
  return {std::move(name),
          [method, change](WorkerRig& rig) {
            Request request;
            request.set_deployment(kDeployment);
            request.set_epoch(kRunningEpoch + 1);
            change(request);
            return Call(*rig.at(0).stub, method, request).status();
          },
          code, std::move(reason), std::move(field)};
}

std::vector<Case> ControlCases() {
  using reason::kMissingField;
  using reason::kValueOutOfRange;
  const std::string running = PlanId(PlanToText(RigPlan(2)));
  const std::string other(64, 'c');
  using Commit = wire::CommitPlanRequest;
  using Abort = wire::AbortPlanRequest;
  using Release = wire::ReleasePlanRequest;
  return {
      Control<Commit>(
          "CommitWithoutPlan", &Stub::CommitPlan, [](Commit&) {}, kMissingField, "plan_id"),
      Control<Commit>(
          "CommitOfNothing", &Stub::CommitPlan, [other](Commit& r) { r.set_plan_id(other); },
          reason::kNotPrepared, "", Code::kFailedPrecondition),
      Control<Commit>(
          "CommitOfAStaleEpoch", &Stub::CommitPlan,
          [running](Commit& r) {
            r.set_plan_id(running);
            r.set_epoch(1);
          },
          reason::kStaleEpoch, "", Code::kAborted),
      Control<Commit>(
          "CommitOfAnotherPlan", &Stub::CommitPlan,
          [other](Commit& r) {
            r.set_plan_id(other);
            r.set_epoch(kRunningEpoch);
          },
          reason::kEpochTaken, "", Code::kAborted),
      Control<Commit>(
          "NegativeDrain", &Stub::CommitPlan,
          [running](Commit& r) {
            r.set_plan_id(running);
            r.mutable_drain_timeout()->set_seconds(-1);
          },
          kValueOutOfRange, "drain_timeout"),
      Control<Abort>(
          "AbortOfTheRunningPlan", &Stub::AbortPlan,
          [running](Abort& r) {
            r.set_plan_id(running);
            r.set_epoch(kRunningEpoch);
          },
          reason::kAlreadyCommitted, "", Code::kFailedPrecondition),
      Control<Abort>(
          "AbortWithALongReason", &Stub::AbortPlan,
          [running](Abort& r) {
            r.set_plan_id(running);
            r.set_reason(std::string(300, 'x'));
          },
          kValueOutOfRange, "reason"),
      Control<Release>(
          "ReleaseUnderTheRunningEpoch", &Stub::ReleasePlan, [](Release& r) { r.set_epoch(kRunningEpoch); },
          reason::kEpochTaken, "", Code::kAborted),
      Control<Release>(
          "ReleaseOfAStaleEpoch", &Stub::ReleasePlan, [](Release& r) { r.set_epoch(1); }, reason::kStaleEpoch,
          "", Code::kAborted),
      {"StateOfABadName",
       [](WorkerRig& rig) {
         wire::GetWorkerStateRequest request;
         request.set_deployment("UPPER");
         return Call(*rig.at(0).stub, &Stub::GetWorkerState, request).status();
       },
       Code::kInvalidArgument, reason::kBadName, "deployment"},
  };
}

absl::Status CallWithBytes(WorkerRig& rig, const std::string& method, const std::string& bytes) {
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  std::promise<grpc::Status> done;
  grpc::GenericStub stub(rig.at(0).channel);
  stub.UnaryCall(&context, "/kvasir.worker.v1.WorkerService/" + method, grpc::StubOptions(), &request,
                 &response, [&done](grpc::Status status) { done.set_value(std::move(status)); });
  return StatusOfCall(done.get_future().get());
}

std::vector<Case> ByteCases() {
  std::vector<Case> cases;
  for (const char* method :
       {"PreparePlan", "CommitPlan", "AbortPlan", "ReleasePlan", "GetWorkerState", "ExecuteStep"}) {
    cases.push_back(
        {std::string("GarbageBytes") + method,
         [method](WorkerRig& rig) { return CallWithBytes(rig, method, std::string("\x0a\xff\xff\xff", 4)); },
         Code::kInvalidArgument, reason::kMalformedMessage, ""});
  }
  cases.push_back(
      {"TooLargeMessage",
       [](WorkerRig& rig) { return CallWithBytes(rig, "PreparePlan", std::string(17 << 20, 'x')); },
       Code::kResourceExhausted, reason::kMessageTooLarge, ""});
  cases.push_back({"ExpiredDeadline",
                   [](WorkerRig& rig) {
                     return Call(*rig.at(0).stub, &Stub::GetWorkerState, wire::GetWorkerStateRequest(),
                                 std::chrono::milliseconds(-1))
                         .status();
                   },
                   Code::kDeadlineExceeded, "DEADLINE_EXCEEDED", ""});
  return cases;
}

std::vector<Case> AllCases() {
  std::vector<Case> all = PrepareCases();
  for (std::vector<Case> more : {StepCases(), ControlCases(), ByteCases()}) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return all;
}

class MalformedTest : public ::testing::TestWithParam<Case> {};

TEST_P(MalformedTest, GetsItsCodeReasonAndFieldAndAGoodRequestSucceeds) {
  WorkerRig& rig = SharedRig();
  const absl::Status status = GetParam().call(rig);
  const TypedError error = ErrorOf(status);
  EXPECT_EQ(status.code(), GetParam().code) << status;
  EXPECT_EQ(error.reason, GetParam().reason) << status;
  EXPECT_EQ(error.field, GetParam().field) << status;
  EXPECT_NE(error.message, "");
  const auto state = Call(*rig.at(0).stub, &Stub::GetWorkerState, wire::GetWorkerStateRequest());
  KVASIR_ASSERT_OK(state);
  ASSERT_EQ(state->deployments_size(), 1) << "a refused request leaves nothing behind";
  EXPECT_EQ(state->deployments(0).running().epoch(), kRunningEpoch);
  EXPECT_FALSE(state->deployments(0).has_pending());
}

INSTANTIATE_TEST_SUITE_P(Requests, MalformedTest, ::testing::ValuesIn(AllCases()),
                         [](const auto& tested) { return tested.param.name; });

// Requests of a Decode stream: an error of one leaves the others alone.
struct JoinCase {
  std::string name;
  std::function<void(wire::DecodeRequest&)> change;
  Code code;
  std::string reason;
  std::string field;
};
void PrintTo(const JoinCase& c, std::ostream* out) { *out << c.name; }

using Sampling = wire::SamplingParameters;

JoinCase SamplingCase(std::string name, const std::string& field, std::function<void(Sampling&)> change) {
  return {
      std::move(name),
      [change = std::move(change)](wire::DecodeRequest& r) { change(*r.mutable_join()->mutable_sampling()); },
      Code::kInvalidArgument, reason::kValueOutOfRange, "sampling." + field};
}

class MalformedJoinTest : public ::testing::TestWithParam<JoinCase> {};

TEST_P(MalformedJoinTest, IsAnsweredOnTheStreamAndTheOtherRequestFinishes) {
  wire::DecodeRequest bad = JoinMessage(7, {1, 2, 3}, 5, true);
  GetParam().change(bad);
  const DecodeResult result = DecodeAllOf(
      *SharedRig().at(0).stub, {JoinMessage(1, {1, 2, 3}, 9, true), bad, JoinMessage(2, {4}, 9, false)});
  KVASIR_EXPECT_OK(result.status);
  EXPECT_TRUE(result.requests.at(1).finished);
  EXPECT_TRUE(result.requests.at(2).finished);
  const wire::ErrorEvent& error = result.requests.at(bad.join().tag()).error;
  EXPECT_EQ(static_cast<Code>(error.code()), GetParam().code) << error.ShortDebugString();
  EXPECT_EQ(error.reason(), GetParam().reason);
  EXPECT_EQ(error.field(), GetParam().field);
  EXPECT_NE(error.message(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Joins, MalformedJoinTest,
    ::testing::Values(
        JoinCase{"ZeroTag", [](wire::DecodeRequest& r) { r.mutable_join()->set_tag(0); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "tag"},
        JoinCase{"NoDeployment", [](wire::DecodeRequest& r) { r.mutable_join()->clear_deployment(); },
                 Code::kInvalidArgument, reason::kMissingField, "deployment"},
        JoinCase{"UnknownDeployment",
                 [](wire::DecodeRequest& r) { r.mutable_join()->set_deployment("other"); }, Code::kNotFound,
                 reason::kDeploymentUnknown, ""},
        JoinCase{"EmptyPrompt", [](wire::DecodeRequest& r) { r.mutable_join()->clear_prompt_token_ids(); },
                 Code::kInvalidArgument, reason::kMissingField, "prompt_token_ids"},
        JoinCase{
            "HugePrompt",
            [](wire::DecodeRequest& r) { r.mutable_join()->mutable_prompt_token_ids()->Resize(1 << 20, 1); },
            Code::kInvalidArgument, reason::kValueOutOfRange, "prompt_token_ids"},
        JoinCase{
            "TokenBeyondTheVocabulary",
            [](wire::DecodeRequest& r) { r.mutable_join()->set_prompt_token_ids(1, testing::kSmallVocab); },
            Code::kInvalidArgument, reason::kValueOutOfRange, "prompt_token_ids[1]"},
        JoinCase{"NegativeToken",
                 [](wire::DecodeRequest& r) { r.mutable_join()->set_prompt_token_ids(2, -1); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "prompt_token_ids[2]"},
        JoinCase{"NoMaxTokens", [](wire::DecodeRequest& r) { r.mutable_join()->clear_max_tokens(); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "max_tokens"},
        JoinCase{"NegativeMaxTokens", [](wire::DecodeRequest& r) { r.mutable_join()->set_max_tokens(-5); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "max_tokens"},
        JoinCase{"StopTokenBeyondTheVocabulary",
                 [](wire::DecodeRequest& r) { r.mutable_join()->add_stop_token_ids(1 << 30); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "stop_token_ids[0]"},
        JoinCase{"TooManyStopTokens",
                 [](wire::DecodeRequest& r) { r.mutable_join()->mutable_stop_token_ids()->Resize(65, 1); },
                 Code::kInvalidArgument, reason::kTooManyItems, "stop_token_ids"},
        SamplingCase("NegativeTemperature", "temperature", [](Sampling& s) { s.set_temperature(-0.5); }),
        SamplingCase("HotTemperature", "temperature", [](Sampling& s) { s.set_temperature(101); }),
        SamplingCase("TemperatureIsNoNumber", "temperature", [](Sampling& s) { s.set_temperature(NAN); }),
        SamplingCase("InfiniteTemperature", "temperature", [](Sampling& s) { s.set_temperature(INFINITY); }),
        SamplingCase("NegativeTopK", "top_k", [](Sampling& s) { s.set_top_k(-1); }),
        SamplingCase("HugeTopK", "top_k", [](Sampling& s) { s.set_top_k(INT64_MAX); }),
        SamplingCase("ZeroTopP", "top_p", [](Sampling& s) { s.set_top_p(0); }),
        SamplingCase("TopPAboveOne", "top_p", [](Sampling& s) { s.set_top_p(1.5); }),
        SamplingCase("TopPIsNoNumber", "top_p", [](Sampling& s) { s.set_top_p(NAN); }),
        JoinCase{"UnknownVerifyMethod",
                 [](wire::DecodeRequest& r) {
                   r.mutable_join()->mutable_sampling()->set_verify_method(
                       static_cast<wire::VerifyMethod>(9));
                 },
                 Code::kInvalidArgument, reason::kUnknownValue, "sampling.verify_method"},
        JoinCase{"ZeroTimeout", [](wire::DecodeRequest& r) { r.mutable_join()->mutable_timeout(); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "timeout"},
        JoinCase{"NegativeTimeout",
                 [](wire::DecodeRequest& r) { r.mutable_join()->mutable_timeout()->set_seconds(-1); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "timeout"},
        JoinCase{"TimeoutOfDays",
                 [](wire::DecodeRequest& r) { r.mutable_join()->mutable_timeout()->set_seconds(86'401); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "timeout"},
        JoinCase{"LongerThanTheContext",
                 [](wire::DecodeRequest& r) { r.mutable_join()->set_max_tokens(1 << 20); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "max_tokens"}),
    [](const auto& tested) { return tested.param.name; });

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
  grpc::ChannelArguments narrow;
  narrow.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  narrow.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64);
  const auto stub = wire::WorkerService::NewStub(
      grpc::CreateCustomChannel(rig.at(0).address(), grpc::InsecureChannelCredentials(), narrow));
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
