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
#include "tests/worker/service/shared_rig.h"
#include "tests/worker/service/worker_rig.h"

namespace kvasir {
namespace {

using testing::Call;
using testing::DecodeAllOf;
using testing::DecodeResult;
using testing::JoinMessage;
using testing::kDeployment;
using testing::kRunningEpoch;
using testing::RigPlan;
using testing::SharedRig;
using testing::StatusOfCall;
using testing::WorkerRig;
using Stub = worker::v1::WorkerService::Stub;
using Code = absl::StatusCode;
namespace wire = worker::v1;

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
          "NegativeSeat", [](R& r) { r.mutable_step()->mutable_sequences(0)->set_seat(-1); },
          kValueOutOfRange, "step.sequences[0].seat"),
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
          "NegativeCost", [](R& r) { r.mutable_step()->mutable_cost()->set_fixed(-1); }, kValueOutOfRange,
          "step.cost.fixed"),
      Step(
          "AbsurdCost", [](R& r) { r.mutable_step()->mutable_cost()->set_row(std::int64_t{1} << 60); },
          kValueOutOfRange, "step.cost.row"),
      Step(
          "ZeroParentIsTheNullParent", [](R& r) { r.mutable_step()->add_zero_parent_ids(0); },
          kValueOutOfRange, "step.zero_parent_ids[0]"),
      Step(
          "NegativePoolMoves", [](R& r) { r.mutable_step()->mutable_move()->set_pool_id(-1); },
          kValueOutOfRange, "step.move.pool_id"),
      Step(
          "NullParentMoves", [](R& r) { r.mutable_step()->mutable_move(); }, kValueOutOfRange,
          "step.move.parent_id"),
      Step(
          "MoveWithoutTarget",
          [](R& r) {
            r.mutable_step()->mutable_move()->set_parent_id(1);
            r.mutable_step()->mutable_move()->add_from_block_ids(3);
          },
          reason::kConflictingFields, "step.move.to_block_ids"),
      Step(
          "NegativeTarget",
          [](R& r) {
            r.mutable_step()->mutable_move()->set_parent_id(1);
            r.mutable_step()->mutable_move()->add_from_block_ids(3);
            r.mutable_step()->mutable_move()->add_to_block_ids(-3);
          },
          kValueOutOfRange, "step.move.to_block_ids[0]"),
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

}  // namespace
}  // namespace kvasir
