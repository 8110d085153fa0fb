// diff, solve and sweep as a person and a pipeline call them.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/sha256.h"
#include "planner/cli/commands.h"
#include "tests/planner/cli/run_cli_test.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace kvasir::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using QuestionsTest = RunCliTest;

nlohmann::json Json(const Answer& answer) { return nlohmann::json::parse(answer.out, nullptr, false); }

class DiffTest : public RunCliTest {
 protected:
  // The id of a plan that is now stored.
  std::string Planned(const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--kv-memory", "46.8GiB", "--context", "128k", "--output", "json"};
    flags.insert(flags.end(), more.begin(), more.end());
    const nlohmann::json json = Json(Run(CommandOf("plan", kKimi, flags)));
    return json["plan_id"].get<std::string>();
  }
};

TEST_F(DiffTest, ADropIsShownAndFailsTheGate) {
  const std::string before = Planned({});
  const std::string after = Planned({"--state-rollback", "snapshots"});
  const Answer shown = Run({"diff", before, after});
  EXPECT_EQ(shown.code, kExitOk);
  EXPECT_THAT(shown.out, HasSubstr("differs   plan " + before.substr(0, 12)));
  const Answer gate = Run({"diff", before, after, "--fail-on-capacity-drop", "2%"});
  EXPECT_EQ(gate.code, kExitRefused);
  testing::ExpectGolden("cli/diff_fails.txt", gate.out);
  EXPECT_EQ(Run({"diff", before, after, "--fail-on-capacity-drop", "90%"}).code, kExitOk);
  // The other way it is a gain.
  EXPECT_EQ(Run({"diff", after, before, "--fail-on-capacity-drop", "0"}).code, kExitOk);
}

TEST_F(DiffTest, ProgramsReadTheSame) {
  const std::string before = Planned({});
  const std::string after = Planned({"--state-rollback", "snapshots"});
  const Answer gate = Run({"diff", before, after, "--fail-on-capacity-drop=2%", "--output=json"});
  EXPECT_EQ(gate.code, kExitRefused);
  const nlohmann::json json = Json(gate);
  EXPECT_EQ(json["schema"], "kvasir.diff/1");
  EXPECT_EQ(json["verdict"], "fails");
  EXPECT_EQ(json["limit_percent_hundredths"], 200);
  ASSERT_EQ(json["capacity"].size(), 3U);
  EXPECT_TRUE(json["capacity"][2]["fails"]);
  EXPECT_EQ(json["fields"][0]["field"], "rollback");
  EXPECT_EQ(json["fields"][0]["before"], "replay");
}

TEST_F(DiffTest, APlanIsLikeItself) {
  const std::string id = Planned({});
  const Answer same = Run({"diff", id, id, "--fail-on-capacity-drop", "0"});
  EXPECT_EQ(same.code, kExitOk);
  EXPECT_THAT(same.out, HasSubstr("same   plan"));
  EXPECT_THAT(same.out, Not(HasSubstr("Because")));
}

TEST_F(DiffTest, BesideTheEnginesLayouts) {
  const std::string plan = Planned({});
  const Answer shown = Run({"diff", "vllm-2026-11", plan});
  EXPECT_EQ(shown.code, kExitOk);
  testing::ExpectGolden("cli/diff_engine.txt", shown.out);
  const nlohmann::json json = Json(Run({"diff", "vllm-2026-11", plan, "--output=json"}));
  EXPECT_EQ(json["schema"], "kvasir.engine_diff/1");
  EXPECT_EQ(json["plan_id"], plan);
  ASSERT_EQ(json["capacity"].size(), 3U);
  EXPECT_EQ(json["capacity"][0]["engine"].size(), 3U);
  for (const nlohmann::json& row : json["capacity"]) {
    for (const nlohmann::json& mode : row["engine"]) EXPECT_GE(row["requests"], mode["requests"]) << row;
  }
  EXPECT_EQ(Run({"diff", "vllm-2026-11", plan, "--fail-on-capacity-drop", "0"}).code, kExitOk);
  const Answer turned = Run({"diff", plan, "vllm-2026-11"});
  EXPECT_EQ(turned.code, kExitBadUsage);
  EXPECT_THAT(turned.err, HasSubstr("vllm-2026-11 stands first"));
  fs::remove(root_ / "kvasir" / "questions" / (plan + ".json"));
  const Answer without = Run({"diff", "vllm-2026-11", plan});
  EXPECT_EQ(without.code, kExitBadUsage);
  EXPECT_THAT(without.err, HasSubstr("the question behind it is not stored here"));
}

// Snapshots admit fewer than the engine's RecoverSSM.
TEST_F(DiffTest, TheGateAsksForTheEnginesBestLayout) {
  const std::string plan = Planned({"--state-rollback", "snapshots"});
  const Answer gate = Run({"diff", "vllm-2026-11", plan, "--fail-on-capacity-drop", "2%"});
  EXPECT_EQ(gate.code, kExitRefused);
  EXPECT_THAT(gate.out, HasSubstr("FAIL at 8k"));
}

TEST_F(DiffTest, BadUsage) {
  const std::string id = Planned({});
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"diff", id},
           {"diff", id, "ffffffff"},
           {"diff", "/nowhere", id},
           {"diff", id, id, "--fail-on-capacity-drop", "2x"},
           {"diff", id, id, "--fail-on-capacity-drop", "-2"},
           {"diff", id, id, "--fail-on-capacity-drop", "101%"},
           {"diff", id, id, "--output", "csv"},
       }) {
    const Answer answer = Run(args);
    EXPECT_EQ(answer.code, kExitBadUsage) << answer.out;
    EXPECT_THAT(answer.err, HasSubstr("kvasir diff"));
  }
}

// The flags that solve prints plan the same plan.
TEST_F(QuestionsTest, ASolutionIsAPlanThatCanBeMadeAgain) {
  const Answer solved =
      Run(CommandOf("solve", kKimi, {"context", "--kv-memory", "20GiB", "--requests", "64"}));
  EXPECT_EQ(solved.code, kExitOk);
  testing::ExpectGolden("cli/solve_context.txt", solved.out);
  // What solve stored is enough to explain it.
  const std::size_t id = solved.out.find("plan ") + 5;
  const Answer explained = Run({"explain", solved.out.substr(id, 12)});
  EXPECT_EQ(explained.code, kExitOk) << explained.err;
  EXPECT_THAT(explained.out, Not(HasSubstr("not stored")));
  const std::string head = "  again    kvasir ";
  const std::size_t at = solved.out.find(head) + head.size();
  std::vector<std::string> words;
  std::istringstream command(solved.out.substr(at, solved.out.find('\n', at) - at));
  for (std::string word; command >> word;) words.push_back(word);
  words.insert(words.end(), {"--output", "json"});
  const Answer again = Run(words);
  EXPECT_EQ(again.code, kExitOk) << again.err;
  EXPECT_THAT(solved.out, HasSubstr(Json(again)["plan_id"].get<std::string>().substr(0, 12)));
  EXPECT_EQ(Run({"explain", Json(again)["plan_id"].get<std::string>()}).code, kExitOk);
}

// Every remedy that explain offers is a plan that can be made, with the capacity that was promised.
TEST_F(QuestionsTest, RemediesKeepTheirPromise) {
  const std::vector<std::string> base =
      CommandOf("plan", {"--target", "kimi-k3", "--draft", "kimi-k3-dspark", "--tp", "8"},
                {"--kv-memory", "46.8GiB", "--context", "8k,32k,128k", "--output", "json"});
  const auto plan = Json(Run(base));
  const auto explained = Json(Run({"explain", plan["plan_id"].get<std::string>(), "--output", "json"}));
  ASSERT_FALSE(explained["remedies"].empty());
  for (const auto& remedy : explained["remedies"]) {
    std::vector<std::string> changed = base;
    for (const auto flag : absl::StrSplit(remedy["flags"].get<std::string>(), ' '))
      changed.emplace_back(flag);
    if (remedy["flags"] == "no --draft") {
      changed = base;
      changed.erase(changed.begin() + 3, changed.begin() + 5);
    }
    const auto applied = Json(Run(changed));
    EXPECT_EQ(applied["plan_id"], remedy["plan_id"]) << remedy["flags"];
    EXPECT_EQ(applied["capacity"], remedy["capacity"]) << remedy["flags"];
  }
}

TEST_F(QuestionsTest, WithoutItsQuestionAPlanHasNoRemedies) {
  const Answer planned = Run(CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--output", "text"}));
  const std::string id = Sha256Hex(planned.out);
  const fs::path question = root_ / "kvasir" / "questions" / (id + ".json");
  ASSERT_TRUE(fs::exists(question));
  for (const std::string text : {"", "[]", "{\"tp\": \"two\"}", "{\"tp\": 1}"}) {
    std::ofstream(question) << text;
    const Answer answer = Run({"explain", id, "--output", "json"});
    EXPECT_EQ(answer.code, kExitOk);
    EXPECT_TRUE(Json(answer)["remedies"].is_null()) << text;
  }
  fs::remove(question);
  EXPECT_THAT(Run({"explain", id}).out, HasSubstr("question is not stored here"));
  EXPECT_THAT(Run({"explain", id, "--topic", "size"}).out, Not(HasSubstr("not stored")));
}

TEST_F(QuestionsTest, EveryGoalForPrograms) {
  const std::vector<std::string> models = {"--target", "kimi-k3", "--draft", "kimi-k3-dspark"};
  const std::vector<std::vector<std::string>> asked = {
      {"requests", "--tp", "8", "--dcp", "8", "--kv-memory", "46.8GiB", "--context", "128k"},
      {"context", "--tp", "8", "--dcp", "8", "--kv-memory", "46.8GiB", "--requests", "16"},
      {"ranks", "--kv-memory", "46.8GiB", "--requests", "64", "--context", "128k", "--gpus", "16"},
      {"memory", "--tp", "8", "--dcp", "8", "--requests", "64", "--context", "128k"},
  };
  for (const std::vector<std::string>& more : asked) {
    SCOPED_TRACE(more.front());
    std::vector<std::string> words = CommandOf("solve", models, more);
    words.insert(words.end(), {"--output", "json"});
    const Answer answer = Run(words);
    EXPECT_EQ(answer.code, kExitOk) << answer.err;
    const nlohmann::json json = Json(answer);
    EXPECT_EQ(json["schema"], "kvasir.solve/1");
    EXPECT_EQ(json["goal"], more.front());
    EXPECT_EQ(json["verdict"], "solved");
    EXPECT_GT(json["value"].get<std::int64_t>(), 0);
    EXPECT_GE(json["requests"].get<std::int64_t>(), json["options"]["min_requests"].get<std::int64_t>());
  }
}

TEST_F(QuestionsTest, WhatCannotBeSolvedSaysWhy) {
  const Answer small =
      Run(CommandOf("solve", kKimi, {"requests", "--kv-memory", "64MiB", "--context", "128k"}));
  EXPECT_EQ(small.code, kExitDoesNotFit);
  EXPECT_THAT(small.out, HasSubstr("does not fit   short by"));
  const Answer device = Run({"solve", "ranks", "--target", "kimi-k3", "--draft", "kimi-k3-dspark", "--gpu",
                             "h100", "--gpus", "8", "--requests", "2", "--context", "8k"});
  EXPECT_EQ(device.code, kExitDoesNotFit);
  EXPECT_THAT(device.out, HasSubstr("nothing left for caches"));
  // Weights are known as a range: what their least leaves is enough, what their most leaves is not.
  const Answer perhaps = Run({"solve", "ranks", "--target", "kimi-k3", "--draft", "kimi-k3-dspark", "--gpu",
                              "h200", "--gpus", "16", "--requests", "64", "--context", "128k"});
  EXPECT_EQ(perhaps.code, kExitDoesNotFit);
  EXPECT_THAT(perhaps.out, HasSubstr("may fit   16 ranks: TP 16 × DCP 16"));
  EXPECT_THAT(perhaps.out, HasSubstr("at worst each of 16 ranks on NVIDIA H200"));
  EXPECT_THAT(perhaps.out, HasSubstr("--tp 16 --dcp 16 --kv-memory"));
  const Answer refused = Run({"solve", "requests", "--target", "kimi-k3", "--tp", "8", "--dcp", "3",
                              "--kv-memory", "20GiB", "--output", "json"});
  EXPECT_EQ(refused.code, kExitRefused);
  EXPECT_EQ(Json(refused)["verdict"], "refused");
  EXPECT_FALSE(Json(refused)["why_not"]["refusals"].empty());
  EXPECT_FALSE(Json(refused)["instead"].empty());
}

// Rules are judged before any memory; and no number of ranks is named that could not be.
TEST_F(QuestionsTest, ADevicesQuestionBreaksRulesToo) {
  const std::vector<std::string> models = {"--target", "kimi-k3", "--draft", "kimi-k3-dspark"};
  const Answer heads = Run(CommandOf("solve", models, {"requests", "--gpu", "h200", "--tp", "3"}));
  EXPECT_EQ(heads.code, kExitRefused);
  EXPECT_THAT(heads.out, HasSubstr("HEADS_NOT_DIVISIBLE_BY_TP"));
  const Answer many =
      Run(CommandOf("solve", models, {"ranks", "--gpu", "h200", "--gpus", "15", "--context", "8k"}));
  EXPECT_EQ(many.code, kExitDoesNotFit);
  EXPECT_THAT(many.out, AllOf(HasSubstr("each of 8 ranks"), Not(HasSubstr("divide"))));
}

// What no number of ranks holds is told of the nearest, in the words of solve.
TEST_F(QuestionsTest, TheNearestToFittingIsNamed) {
  const std::vector<std::string> asked =
      CommandOf("solve", {"--target", "kimi-k3", "--draft", "kimi-k3-dspark"},
                {"ranks", "--kv-memory", "1GiB", "--gpus", "4", "--requests", "64", "--context", "128k"});
  const Answer none = Run(asked);
  EXPECT_EQ(none.code, kExitDoesNotFit);
  EXPECT_THAT(none.out,
              AllOf(HasSubstr("Nearest to fitting: TP 4 × DCP 4."), Not(HasSubstr("min-requests"))));
  std::vector<std::string> words = asked;
  words.insert(words.end(), {"--output", "json"});
  EXPECT_EQ(Json(Run(words))["why_not"]["nearest"], nlohmann::json({{"tp", 4}, {"dcp", 4}}));
}

TEST_F(QuestionsTest, WhatMayFitSaysWhatItNeeds) {
  const std::vector<std::string> asked = {"solve",          "ranks", "--target",  "kimi-k3", "--draft",
                                          "kimi-k3-dspark", "--gpu", "h200",      "--gpus",  "16",
                                          "--requests",     "64",    "--context", "128k"};
  std::vector<std::string> for_programs = asked;
  for_programs.insert(for_programs.end(), {"--output", "json"});
  const nlohmann::json json = Json(Run(for_programs));
  EXPECT_EQ(json["verdict"], "may_fit");
  const auto needed = json["needed_bytes"].get<std::int64_t>();
  EXPECT_LT(needed, json["at_best"]["options"]["kv_memory_bytes"].get<std::int64_t>());
  // So much is enough, and a byte less is not.
  for (const std::int64_t bytes : {needed, needed - 1}) {
    const Answer plan =
        Run({"plan", "--target", "kimi-k3", "--draft", "kimi-k3-dspark", "--tp", "16", "--dcp", "16",
             "--kv-memory", std::to_string(bytes), "--context", "128k", "--min-requests", "64"});
    EXPECT_EQ(plan.code, bytes == needed ? kExitOk : kExitDoesNotFit) << plan.out;
  }
}

TEST_F(QuestionsTest, AGridInOneTable) {
  const std::vector<std::string> grid = {
      "sweep",   "--target",  "kimi-k3", "--draft",   "kimi-k3-dspark",
      "--tp",    "8,16",      "--dcp",   "1,8,16",    "--kv-memory",
      "46.8GiB", "--context", "8k,128k", "--ruleset", "native,vllm-2026-11"};
  const Answer table = Run(grid);
  EXPECT_EQ(table.code, kExitOk) << table.err;
  testing::ExpectGolden("cli/sweep.txt", table.out);
  std::vector<std::string> words = grid;
  words.insert(words.end(), {"--output", "json"});
  const nlohmann::json json = Json(Run(words));
  EXPECT_EQ(json["schema"], "kvasir.sweep/1");
  EXPECT_EQ(json["points"].size(), 20U);  // dcp 16 is no point of tp 8
  words.back() = "csv";
  const Answer csv = Run(words);
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 21);
  EXPECT_THAT(csv.out, HasSubstr("ruleset,device,kv_memory_bytes,tp,dcp,"));
  words.emplace_back("--front");
  const Answer front = Run(words);
  EXPECT_GT(std::count(front.out.begin(), front.out.end(), '\n'), 1);
  EXPECT_EQ(front.out.find("false"), std::string::npos);
}

// Rows of a table whose points are not all there.
TEST_F(QuestionsTest, TheFrontAlone) {
  const Answer front =
      Run({"sweep", "--target", "kimi-k3", "--draft", "kimi-k3-dspark", "--tp", "4,8", "--dcp", "1,2,4,8",
           "--kv-memory", "46.8GiB", "--context", "8k,32k,128k", "--front"});
  EXPECT_EQ(front.code, kExitOk);
  EXPECT_EQ(front.out.find(" -"), std::string::npos);
  EXPECT_THAT(front.out, HasSubstr("*"));
}

TEST_F(QuestionsTest, BadUsage) {
  const std::vector<std::string> kimi = {"--target", "kimi-k3"};
  const std::vector<std::vector<std::string>> cases = {
      CommandOf("solve", kimi, {"--kv-memory", "1GiB"}),
      CommandOf("solve", kimi, {"speed", "--kv-memory", "1GiB"}),
      CommandOf("solve", kimi, {"context", "--context", "8k", "--kv-memory", "1GiB"}),
      CommandOf("solve", kimi, {"requests", "--requests", "8", "--kv-memory", "1GiB"}),
      CommandOf("solve", kimi, {"ranks", "--tp", "8", "--kv-memory", "1GiB"}),
      CommandOf("solve", kimi, {"memory", "--kv-memory", "1GiB"}),
      CommandOf("solve", kimi, {"context"}),
      CommandOf("solve", kimi, {"context", "--gpu", "h999"}),
      CommandOf("solve", kimi, {"context", "--gpu", "h200", "--kv-memory", "1GiB"}),
      CommandOf("solve", kimi, {"ranks", "--gpu", "h200", "--gpus", "0"}),
      CommandOf("sweep", kimi, {}),
      CommandOf("sweep", kimi, {"--tp", "8,x", "--kv-memory", "1GiB"}),
      CommandOf("sweep", kimi, {"--draft", "kimi-k3-dspark", "--draft-tokens", "3,0", "--kv-memory", "1GiB"}),
      CommandOf("sweep", kimi, {"--tp", "8,8", "--kv-memory", "1GiB"}),
      CommandOf("sweep", kimi, {"--gpu", "h100,none"}),
      CommandOf("sweep", kimi, {"--kv-memory", "1GiB", "--output", "text"}),
  };
  for (const std::vector<std::string>& args : cases) {
    const Answer answer = Run(args);
    EXPECT_EQ(answer.code, kExitBadUsage) << answer.out << answer.err;
    EXPECT_EQ(answer.out, "");
  }
}

}  // namespace
}  // namespace kvasir::cli
