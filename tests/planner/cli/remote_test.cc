// kvasir-remote: apply, preflight, status, delete, and plans made on a server. remote_decode_test.cc has
// decode.
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
#include "tests/planner/cli/remote_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::StatusIs;

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

// A name that leads nowhere is the caller's mistake; a broken file behind a good name is the cluster's.
TEST_F(RemoteTest, ACheckpointThatIsNotThereAndOneThatIsBrokenHaveTheirExitCodes) {
  const std::string id = StorePlan();
  const std::vector<std::string> apply = {"apply", id, "--workers", "a:1", "--target-checkpoint", "t"};
  planner_.status = MakeError({.code = absl::StatusCode::kNotFound,
                               .reason = reason::kCheckpointNotFound,
                               .message = "t: there is no such file"});
  EXPECT_EQ(Run(apply).code, kExitBadUsage);
  planner_.status = MakeError({.code = absl::StatusCode::kInvalidArgument,
                               .reason = reason::kCheckpointInvalid,
                               .message = "t/model.safetensors: it is truncated"});
  EXPECT_EQ(Run(apply).code, kExitServiceFailure);
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
