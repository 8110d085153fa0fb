// The commands of kvasir-remote against services of this test, over real gRPC on loopback.
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/sha256.h"
#include "common/base/typed_error.h"
#include "common/models/model_text.h"
#include "common/rpc/status_codec.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "planner/cli/plan_question.h"
#include "planner/cli/remote/apply_request.h"
#include "planner/cli/remote/prompts.h"
#include "planner/cli/remote/remote_commands.h"
#include "planner/cli/run_cli.h"
#include "planner/core/outcome.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/matchers.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::StatusIs;

// Answers as the test says and keeps what it was asked.
class FakePlanner final : public planner::v1::PlannerService::Service {
 public:
  grpc::Status CreatePlan(grpc::ServerContext*, const planner::v1::CreatePlanRequest* request,
                          planner::v1::CreatePlanResponse* response) override {
    create_request = *request;
    *response = create_response;
    return grpc::Status::OK;
  }
  grpc::Status ApplyPlan(grpc::ServerContext*, const planner::v1::ApplyPlanRequest* request,
                         grpc::ServerWriter<planner::v1::ApplyPlanResponse>* writer) override {
    apply_request = *request;
    for (const auto& response : apply_responses) writer->Write(response);
    return ToGrpcStatus(status);
  }
  grpc::Status GetDeployment(grpc::ServerContext*, const planner::v1::GetDeploymentRequest* request,
                             planner::v1::GetDeploymentResponse* response) override {
    asked_deployment = request->deployment();
    *response->mutable_deployment() = deployment;
    return ToGrpcStatus(status);
  }
  grpc::Status DeleteDeployment(grpc::ServerContext*, const planner::v1::DeleteDeploymentRequest* request,
                                planner::v1::DeleteDeploymentResponse* response) override {
    asked_deployment = request->deployment();
    response->set_epoch(13);
    response->add_unreachable_workers("node-b:7451");
    return ToGrpcStatus(status);
  }

  absl::Status status;
  std::string asked_deployment;
  planner::v1::CreatePlanRequest create_request;
  planner::v1::CreatePlanResponse create_response;
  planner::v1::ApplyPlanRequest apply_request;
  std::vector<planner::v1::ApplyPlanResponse> apply_responses;
  planner::v1::Deployment deployment;
};

// Echoes each prompt's ids after the first, two at a time, and finishes; a prompt of one token is refused.
class FakeWorker final : public worker::v1::WorkerService::Service {
 public:
  grpc::Status Decode(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<worker::v1::DecodeResponse, worker::v1::DecodeRequest>* stream) override {
    worker::v1::DecodeRequest request;
    while (stream->Read(&request)) joins.push_back(request.join());
    // Last joined, first answered: the client must go by the tag.
    for (auto it = joins.rbegin(); it != joins.rend(); ++it) Answer(*it, *stream);
    return ToGrpcStatus(status);
  }

  absl::Status status;
  std::vector<worker::v1::JoinRequest> joins;

 private:
  static void Answer(
      const worker::v1::JoinRequest& join,
      grpc::ServerReaderWriter<worker::v1::DecodeResponse, worker::v1::DecodeRequest>& stream) {
    worker::v1::DecodeResponse response;
    response.set_tag(join.tag());
    if (join.prompt_token_ids_size() == 1) {
      response.mutable_error()->set_code(3);
      response.mutable_error()->set_reason("VALUE_OUT_OF_RANGE");
      response.mutable_error()->set_message("too short");
      stream.Write(response);
      return;
    }
    response.mutable_joined()->set_epoch(7);
    response.mutable_joined()->set_seed(77);
    stream.Write(response);
    for (int i = 1; i < join.prompt_token_ids_size(); i += 2) {
      auto& tokens = *response.mutable_tokens();
      tokens.Clear();
      tokens.add_token_ids(join.prompt_token_ids(i));
      if (i + 1 < join.prompt_token_ids_size()) tokens.add_token_ids(join.prompt_token_ids(i + 1));
      for (int t = 0; t < tokens.token_ids_size() && join.sampling().logprobs(); ++t) {
        tokens.add_logprobs(-0.5F);
      }
      stream.Write(response);
    }
    auto& finished = *response.mutable_finished();
    finished.set_reason(worker::v1::FINISH_REASON_STOP_TOKEN);
    finished.set_drafted_tokens(join.speculate() ? 14 : 0);
    finished.set_accepted_tokens(join.speculate() ? 3 : 0);
    finished.set_target_step_count(2);
    finished.mutable_queue_time()->set_nanos(1'500'000);
    stream.Write(response);
  }
};

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

class RemoteTest : public ::testing::Test {
 protected:
  RemoteTest() : root_(fs::path(::testing::TempDir()) / ("kvasir_remote_" + TestName())) {
    fs::remove_all(root_);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&planner_);
    builder.RegisterService(&worker_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
    variables_ = {{"XDG_STATE_HOME", root_.string()}, {"KVASIR_SERVER", address_}};
  }
  ~RemoteTest() override {
    server_->Shutdown();
    fs::remove_all(root_);
  }

  static std::string TestName() { return ::testing::UnitTest::GetInstance()->current_test_info()->name(); }

  // As the two programs together: what `kvasir` passes on is run by `kvasir-remote`.
  Answer Run(const std::vector<std::string>& args) {
    std::ostringstream out;
    std::ostringstream err;
    const auto variable = [this](std::string_view name) -> std::optional<std::string> {
      const auto it = variables_.find(std::string(name));
      if (it == variables_.end()) return std::nullopt;
      return it->second;
    };
    const Console remote_console{out, err, false, variable, nullptr};
    const auto remote = [&remote_console](const std::vector<std::string>& words) {
      return RunRemoteCli(words, remote_console);
    };
    const int code = RunCli(args, Console{out, err, false, variable, remote});
    return {code, out.str(), err.str()};
  }

  // A stored plan of the demo pair on 4 ranks.
  std::string StorePlan() {
    const Answer text = Run({"plan", "--target", "demo-target", "--draft", "demo-dspark", "--tp", "4",
                             "--dcp", "2", "--kv-memory", "8MiB", "--output", "text"});
    EXPECT_EQ(text.code, kExitOk) << text.err;
    return Sha256Hex(text.out);
  }

  fs::path root_;
  FakePlanner planner_;
  FakeWorker worker_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::map<std::string, std::string> variables_;
};

planner::v1::ApplyPlanResponse Prepared(const std::string& worker, std::int64_t error_ppb) {
  planner::v1::ApplyPlanResponse response;
  response.set_epoch(12);
  auto& prepared = *response.mutable_prepared();
  prepared.set_worker_address(worker);
  auto& measured = *prepared.add_measurements();
  measured.set_planned_arena_bytes(8 << 20);
  measured.set_arena_bytes(8 << 20);
  measured.set_graph_count(20);
  measured.set_planned_graph_count(20);
  auto& timing = *prepared.add_graph_timings();
  timing.set_pass("target_verify");
  timing.mutable_median()->set_nanos(1'234'000);
  auto& comparison = *prepared.add_comparisons();
  comparison.set_pass("draft_block");
  comparison.set_error_parts_per_billion(error_ppb);
  comparison.set_tolerance_parts_per_billion(1000);
  comparison.set_replay_equals_eager(true);
  return response;
}

std::vector<planner::v1::ApplyPlanResponse> GoodApply(std::int64_t error_ppb) {
  std::vector<planner::v1::ApplyPlanResponse> out = {Prepared("node-a:7451", error_ppb),
                                                     Prepared("node-b:7451", 0)};
  for (const char* worker : {"node-a:7451", "node-b:7451"}) {
    out.emplace_back().set_epoch(12);
    out.back().mutable_committed()->set_worker_address(worker);
  }
  out.emplace_back().set_epoch(12);
  out.back().mutable_done();
  return out;
}

TEST_F(RemoteTest, ApplySendsTheStoredPlanItsModelsAndEveryRank) {
  const std::string id = StorePlan();
  planner_.apply_responses = GoodApply(0);
  const Answer answer =
      Run({"apply", id.substr(0, 12), "--workers", "node-a:7451,node-b:7451", "--deployment", "k3", "--mode",
           "replace", "--seed", "5", "--drain-timeout", "1500ms"});
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out,
              HasSubstr("prepare   node-a:7451   1 rank   8.00 MiB of 8.00 MiB   graphs 20/20   agreed"));
  EXPECT_THAT(answer.out, HasSubstr("commit    epoch 12 on 2 of 2 workers"));
  const planner::v1::ApplyPlanRequest& sent = planner_.apply_request;
  EXPECT_EQ(sent.plan_id(), id);
  EXPECT_EQ(Sha256Hex(sent.plan_text()), id);
  EXPECT_THAT(ModelFromText(sent.target_model_text()), testing::IsOk());
  EXPECT_THAT(ModelFromText(sent.draft_model_text()), testing::IsOk());
  EXPECT_EQ(sent.deployment(), "k3");
  EXPECT_EQ(sent.weight_seed(), 5);
  EXPECT_EQ(sent.mode(), planner::v1::DEPLOYMENT_MODE_REPLACE);
  EXPECT_EQ(sent.drain_timeout().seconds(), 1);
  EXPECT_EQ(sent.drain_timeout().nanos(), 500'000'000);
  EXPECT_FALSE(sent.has_preflight());
  ASSERT_EQ(sent.workers_size(), 2);
  EXPECT_EQ(sent.workers(1).address(), "node-b:7451");
  EXPECT_EQ(sent.workers(1).ranks(0), 2);
}

TEST_F(RemoteTest, ApplySendsCheckpointsInsteadOfASeed) {
  const std::string id = StorePlan();
  planner_.apply_responses = GoodApply(0);
  const Answer answer = Run({"apply", id, "--workers", "node-a:7451", "--target-checkpoint", "pair/target",
                             "--draft-checkpoint", "pair/draft"});
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_EQ(planner_.apply_request.weight_seed(), 0);
  EXPECT_EQ(planner_.apply_request.checkpoint().target(), "pair/target");
  EXPECT_EQ(planner_.apply_request.checkpoint().draft(), "pair/draft");
  const Answer both =
      Run({"apply", id, "--workers", "node-a:7451", "--target-checkpoint", "t", "--seed", "1"});
  EXPECT_NE(both.code, kExitOk);
  EXPECT_THAT(both.err, HasSubstr("--seed makes weights and --target-checkpoint reads them; give one"));
}

TEST_F(RemoteTest, ApplyAsJson) {
  const std::string id = StorePlan();
  planner_.apply_responses = GoodApply(0);
  const Answer answer = Run({"apply", id, "--workers", "node-a:7451,node-b:7451", "--output", "json"});
  ASSERT_EQ(answer.code, kExitOk) << answer.err;
  const auto json = nlohmann::json::parse(answer.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << answer.out;
  EXPECT_EQ(json["schema"], "kvasir.apply/1");
  EXPECT_EQ(json["plan_id"], id);
  EXPECT_EQ(json["epoch"], 12);
  EXPECT_EQ(json["workers"][0]["ranks"][0]["graphs"], 20);
  EXPECT_EQ(json["committed"].size(), 2U);
}

TEST_F(RemoteTest, PreflightFailsWhereRowsDiffer) {
  const std::string id = StorePlan();
  planner_.apply_responses = GoodApply(999);
  const std::vector<std::string> args = {"preflight", id, "--workers", "node-a:7451,node-b:7451",
                                         "--replays", "9"};
  const Answer good = Run(args);
  EXPECT_EQ(good.code, kExitOk) << good.err;
  EXPECT_THAT(good.out, HasSubstr("passed   2 workers"));
  EXPECT_THAT(good.out, HasSubstr("1.234 ms"));
  EXPECT_THAT(good.out, HasSubstr("0.999 ppm"));
  EXPECT_EQ(planner_.apply_request.preflight().replays_per_graph(), 9);
  EXPECT_EQ(planner_.apply_request.preflight().compared_rows(), 4);
  planner_.apply_responses = GoodApply(1001);
  const Answer bad = Run(args);
  EXPECT_EQ(bad.code, kExitServiceFailure);
  EXPECT_THAT(bad.out, HasSubstr("failed   2 workers"));
}

TEST_F(RemoteTest, ApplyFailureShowsReasonAndValues) {
  const std::string id = StorePlan();
  planner_.status = MakeError({.code = absl::StatusCode::kFailedPrecondition,
                               .reason = reason::kRanksDisagree,
                               .message = "ranks differ in nccl_version",
                               .metadata = {{"rank", "5"}, {"others", "2.28.9"}}});
  const Answer answer = Run({"apply", id, "--workers", "node-a:7451"});
  EXPECT_EQ(answer.code, kExitServiceFailure);
  EXPECT_THAT(answer.err, HasSubstr("apply failed   RANKS_DISAGREE\n  ranks differ in nccl_version\n"));
  EXPECT_THAT(answer.err, HasSubstr("others   2.28.9"));
  planner_.status = absl::OkStatus();
  EXPECT_THAT(Run({"apply", id, "--workers", "node-a:7451"}).err, HasSubstr("the stream ended early"));
}

TEST_F(RemoteTest, ApplyUsage) {
  const std::string id = StorePlan();
  for (const auto& [args, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"apply"}, "missing"},
           {{"apply", id}, "0 workers"},
           {{"apply", id, "--workers", "a:1,a:1"}, "there twice"},
           {{"apply", id, "--workers", "a:1,b:1,c:1,d:1,e:1"}, "5 workers for 4 ranks"},
           {{"apply", id, "--workers", "nowhere"}, "nowhere"},
           {{"apply", id, "--workers", "a:1", "--mode", "fast"}, "--mode fast"},
           {{"apply", id, "--workers", "a:1", "--drain-timeout", "soon"}, "--drain-timeout"},
           {{"apply", id, "--workers", "a:1", "--target", "kimi-k3"}, "another description"},
           {{"apply", "0000000000"}, "no stored plan"},
           {{"preflight", id, "--workers", "a:1", "--replays", "x"}, "--replays"}}) {
    const Answer answer = Run(args);
    EXPECT_EQ(answer.code, kExitBadUsage) << part;
    EXPECT_THAT(answer.err, HasSubstr(part));
  }
  fs::remove_all(root_ / "kvasir" / "models");
  EXPECT_EQ(Run({"apply", id, "--workers", "a:1"}).code, kExitBadUsage);
  planner_.apply_responses = GoodApply(0);
  EXPECT_EQ(Run({"apply", id, "--workers", "a:1", "--target", "demo-target", "--draft", "demo-dspark"}).code,
            kExitOk);
}

TEST_F(RemoteTest, AssignsContiguousRanks) {
  const auto workers = AssignRanks("a:1,[::1]:2", 5);
  KVASIR_ASSERT_OK(workers);
  ASSERT_EQ(workers->size(), 2U);
  EXPECT_EQ((*workers)[0].ranks_size(), 3);
  EXPECT_EQ((*workers)[1].address(), "[::1]:2");
  EXPECT_EQ((*workers)[1].ranks(0), 3);
  EXPECT_EQ((*workers)[1].ranks(1), 4);
}

TEST_F(RemoteTest, StatusForPeopleAndPrograms) {
  planner_.deployment.set_name("default");
  planner_.deployment.set_state(planner::v1::DEPLOYMENT_STATE_ACTIVE);
  planner_.deployment.set_epoch(12);
  planner_.deployment.set_plan_id(std::string(64, 'a'));
  planner_.deployment.set_leader_address("node-a:7451");
  auto& worker = *planner_.deployment.add_workers();
  worker.set_address("node-a:7451");
  worker.add_ranks(0);
  worker.add_ranks(1);
  planner_.deployment.mutable_last_error()->set_reason("RANK_LOST");
  const Answer people = Run({"status"});
  EXPECT_EQ(people.code, kExitOk);
  EXPECT_EQ(people.out,
            "active   deployment default\n\n"
            "  serves       plan aaaaaaaaaaaa, epoch 12\n"
            "  leader       node-a:7451\n"
            "  worker       node-a:7451   ranks 0,1\n"
            "  last error   RANK_LOST\n"
            "\n");
  EXPECT_EQ(planner_.asked_deployment, "default");
  const auto json = nlohmann::json::parse(Run({"status", "--output", "json"}).out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["state"], "active");
  EXPECT_EQ(json["workers"][0]["ranks"].size(), 2U);
  EXPECT_EQ(json["last_error"]["reason"], "RANK_LOST");
}

TEST_F(RemoteTest, Delete) {
  const Answer answer = Run({"delete", "--deployment", "k3"});
  EXPECT_EQ(answer.code, kExitOk);
  EXPECT_EQ(planner_.asked_deployment, "k3");
  EXPECT_THAT(answer.out, HasSubstr("deployment k3, everything retired under epoch 13"));
  EXPECT_THAT(answer.out, HasSubstr("not reached: node-b:7451"));
}

TEST_F(RemoteTest, DecodesAllPromptsOnOneStream) {
  planner_.deployment.set_leader_address(address_);
  const Answer answer = Run({"decode", "ab\n", "xyz", "--stats", "--max-tokens", "9"});
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("[1] ab\\x0a\n[2] xyz\n"));
  EXPECT_THAT(answer.out,
              HasSubstr("6 tokens · 4 target steps · 28 drafted, 6 accepted · 1.0 tokens per step"));
  ASSERT_EQ(worker_.joins.size(), 2U);
  EXPECT_EQ(worker_.joins[0].prompt_token_ids(0), kBeginToken);
  EXPECT_EQ(worker_.joins[0].max_tokens(), 9);
  EXPECT_EQ(worker_.joins[0].stop_token_ids(0), kEndToken);
  EXPECT_TRUE(worker_.joins[0].speculate());
}

TEST_F(RemoteTest, DecodesTokenIdsAsJson) {
  const Answer answer =
      Run({"decode", "--leader", address_, "--tokens", "1,2,3", "--no-speculate", "--output", "json"});
  ASSERT_EQ(answer.code, kExitOk) << answer.err;
  const auto json = nlohmann::json::parse(answer.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  const auto& request = json["requests"][0];
  EXPECT_EQ(request["token_ids"], (std::vector<int>{2, 3}));
  EXPECT_EQ(request["finish"], "stop_token");
  EXPECT_EQ(request["epoch"], 7);
  EXPECT_TRUE(request["error"].is_null());
  EXPECT_FALSE(worker_.joins[0].speculate());
  EXPECT_EQ(worker_.joins[0].stop_token_ids_size(), 0);
}

TEST_F(RemoteTest, DecodeCarriesHowTokensAreChosen) {
  const Answer answer =
      Run({"decode", "--leader", address_, "--tokens", "1,2,3", "1,2", "--temperature", "0.7", "--top-k",
           "40", "--top-p", "0.9", "--seed", "5", "--stop", "10,46", "--logprobs", "--wait"});
  ASSERT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("[1] 2,3\nlogprobs -0.500 -0.500\n"));
  ASSERT_EQ(worker_.joins.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const worker::v1::JoinRequest& join = worker_.joins[i];
    EXPECT_EQ(join.sampling().temperature(), 0.7);
    EXPECT_EQ(join.sampling().top_k(), 40);
    EXPECT_EQ(join.sampling().top_p(), 0.9);
    EXPECT_EQ(join.sampling().seed(), 5 + i);
    EXPECT_TRUE(join.sampling().logprobs());
    EXPECT_TRUE(join.wait());
    EXPECT_EQ(join.stop_token_ids_size(), 2);
  }
  worker_.joins.clear();
  const auto json = nlohmann::json::parse(
      Run({"decode", "--leader", address_, "--tokens", "1,2,3", "--temperature", "1", "--output", "json"})
          .out,
      nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_FALSE(worker_.joins[0].sampling().has_seed());
  EXPECT_FALSE(worker_.joins[0].sampling().has_top_p());
  EXPECT_EQ(json["requests"][0]["seed"], 77);  // the one that the worker picked
  EXPECT_EQ(json["requests"][0]["queue_us"], 1500);
  EXPECT_THAT(Run({"decode", "x", "--temperature", "warm"}).err,
              HasSubstr("--temperature warm: write a number"));
  EXPECT_THAT(Run({"decode", "x", "--top-p", "nan"}).err, HasSubstr("--top-p nan: write a number"));
  EXPECT_THAT(Run({"decode", "x", "--seed", "-1"}).err, HasSubstr("--seed -1: want 0 or more"));
  EXPECT_THAT(Run({"decode", "x", "--stop", "a"}).err, HasSubstr("write them like 1,2,3"));
}

TEST_F(RemoteTest, DecodeFailures) {
  planner_.deployment.set_name("default");
  EXPECT_THAT(Run({"decode", "x"}).err, HasSubstr("serves nothing"));
  planner_.deployment.set_leader_address(address_);
  const Answer refused = Run({"decode", "--tokens", "1", "1,2"});
  EXPECT_EQ(refused.code, kExitBadUsage);
  EXPECT_THAT(refused.err, HasSubstr("prompt 1: VALUE_OUT_OF_RANGE"));
  EXPECT_THAT(refused.out, HasSubstr("[2] 2"));
  worker_.status =
      MakeError({.code = absl::StatusCode::kUnavailable, .reason = reason::kRankLost, .message = "gone"});
  const Answer lost = Run({"decode", "xy"});
  EXPECT_EQ(lost.code, kExitServiceFailure);
  EXPECT_THAT(lost.err, HasSubstr("RANK_LOST"));
  EXPECT_THAT(lost.out, HasSubstr("xy"));  // what came before the end is not lost
  EXPECT_THAT(Run({"decode", "x", "--tokenizer", "gpt2"}).err, HasSubstr("only bytes is known"));
  EXPECT_THAT(Run({"decode", "--tokens", "1,-2"}).err, HasSubstr("write them like 1,2,3"));
  EXPECT_EQ(Run({"decode"}).code, kExitBadUsage);
}

TEST_F(RemoteTest, NobodyAnswers) {
  server_->Shutdown();
  const Answer answer = Run({"status", "--timeout", "500ms"});
  EXPECT_EQ(answer.code, kExitServiceFailure);
  EXPECT_THAT(answer.err, HasSubstr(address_));
  EXPECT_EQ(Run({"status", "--server", "no port"}).code, kExitBadUsage);
  EXPECT_EQ(Run({"status", "--timeout", "1"}).code, kExitBadUsage);
}

TEST_F(RemoteTest, PlanOnServerIsShownAsIfPlannedHere) {
  const std::vector<std::string> args = {"plan",        "--target",    "demo-target", "--draft",
                                         "demo-dspark", "--tp",        "2",           "--dcp",
                                         "2",           "--kv-memory", "8MiB"};
  const Answer here = Run(args);
  ASSERT_EQ(here.code, kExitOk);
  const auto line = CommandLine::Parse(PlanFlags(), {}, std::span(args).subspan(1));
  KVASIR_ASSERT_OK(line);
  const auto question = ReadQuestion(*line, true);
  KVASIR_ASSERT_OK(question);
  const PlanOutcome outcome = MakePlan(RequestOf(*question));
  const auto& planned = std::get<Planned>(outcome);
  auto& wire = *planner_.create_response.mutable_plan();
  wire.set_canonical_text(planned.text);
  wire.set_plan_id(planned.plan_id);
  for (const CapacityRow& row : planned.report.capacity) {
    wire.mutable_report()->add_capacities()->set_context_tokens(row.context_tokens);
  }
  wire.mutable_report()->set_longest_context_tokens(planned.report.longest_context_tokens);
  wire.mutable_report()->set_limited_by_model(planned.report.longest_is_model_limit);

  std::vector<std::string> there = args;
  there.insert(there.end(), {"--server", address_});
  const Answer answer = Run(there);
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_EQ(answer.out, here.out);
  EXPECT_EQ(planner_.create_request.target().model_text(), ModelToText(question->target));
  EXPECT_EQ(planner_.create_request.options().topology().dcp(), 2);

  wire.set_plan_id(std::string(64, '0'));
  const Answer lie = Run(there);
  EXPECT_EQ(lie.code, kExitServiceFailure);
  EXPECT_THAT(lie.err, HasSubstr("its text has the id"));
}

TEST_F(RemoteTest, RefusalsAndMisfitsOfTheServer) {
  const std::vector<std::string> args = {"plan", "--target", "demo-target", "--kv-memory",
                                         "8MiB", "--server", address_};
  auto& refusal = *planner_.create_response.mutable_refusals()->add_refusals();
  refusal.set_rule("DCP_NOT_DIVIDING_TP");
  refusal.set_field("topology.dcp");
  const Answer refused = Run(args);
  EXPECT_EQ(refused.code, kExitRefused);
  EXPECT_THAT(refused.out, HasSubstr("DCP_NOT_DIVIDING_TP"));
  refusal.set_rule("RULE_OF_TOMORROW");
  EXPECT_EQ(Run(args).code, kExitServiceFailure);
  planner_.create_response.mutable_does_not_fit()->set_shortfall_bytes(1024);
  const Answer misfit = Run(args);
  EXPECT_EQ(misfit.code, kExitDoesNotFit);
  EXPECT_THAT(misfit.out, HasSubstr("short by 1.00 KiB"));
  planner_.create_response.Clear();
  EXPECT_EQ(Run(args).code, kExitServiceFailure);
}

TEST(Prompts, BytesAndIds) {
  EXPECT_EQ(BytesPrompt("a\xff"), (std::vector<std::int32_t>{kBeginToken, 97, 255}));
  EXPECT_EQ(TokensAsText({97, 10, 255, 300, kEndToken, 92}), "a\\x0a\\xff<300>\\x5c");
  EXPECT_EQ(TokenIdsText({1, 20}), "1,20");
  const auto ids = ParseTokenIds("1,2,3");
  KVASIR_ASSERT_OK(ids);
  EXPECT_EQ(*ids, (std::vector<std::int32_t>{1, 2, 3}));
  for (const char* text : {"", ",", "1,", "-1", "a", "2147483648", "1 2"}) {
    EXPECT_THAT(ParseTokenIds(text), StatusIs(absl::StatusCode::kInvalidArgument, "tokens")) << text;
  }
}

TEST(Help, EveryRemoteCommandHasFlags) {
  std::ostringstream out;
  std::ostringstream err;
  const Console console{out, err, false, [](std::string_view) { return std::nullopt; }, nullptr};
  for (const std::string command : {"plan", "apply", "preflight", "decode", "status", "delete"}) {
    out.str("");
    EXPECT_EQ(RunRemoteCli(std::vector<std::string>{command, "--help"}, console), kExitOk);
    EXPECT_THAT(out.str(), HasSubstr("Usage: kvasir " + command));
    EXPECT_THAT(out.str(), HasSubstr("--server HOST:PORT"));
  }
  EXPECT_EQ(RunRemoteCli(std::vector<std::string>{}, console), kExitBadUsage);
}

}  // namespace
}  // namespace kvasir::cli
