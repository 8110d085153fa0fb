#include "tests/planner/cli/run_cli_test.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/sha256.h"
#include "planner/cli/commands.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"
#include "tests/testing/shared_data.h"

namespace kvasir::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(RunCliTest, PlanThatFits) {
  const Answer answer = Run(CommandOf("plan", kKimi, {"--kv-memory", "46.8GiB", "--context", "128k"}));
  EXPECT_EQ(answer.code, kExitOk);
  EXPECT_EQ(answer.err, "");
  testing::ExpectGolden("cli/plan_fits.txt", answer.out);
}

TEST_F(RunCliTest, PlanAsJson) {
  const Answer answer = Run(CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--output", "json"}));
  EXPECT_EQ(answer.code, kExitOk);
  testing::ExpectGolden("cli/plan_fits.json", answer.out);
}

TEST_F(RunCliTest, PlanThatDoesNotFit) {
  const std::vector<std::string> args =
      CommandOf("plan", kDemo, {"--kv-memory", "400KiB", "--kv-cache-dtype", "f32"});
  const Answer answer = Run(args);
  EXPECT_EQ(answer.code, kExitDoesNotFit);
  testing::ExpectGolden("cli/plan_does_not_fit.txt", answer.out);
  std::vector<std::string> json = args;
  json.insert(json.end(), {"--output", "json"});
  const Answer machine = Run(json);
  EXPECT_EQ(machine.code, kExitDoesNotFit);
  testing::ExpectGolden("cli/plan_does_not_fit.json", machine.out);
  EXPECT_FALSE(fs::exists(root_ / "kvasir" / "plans"));
}

TEST_F(RunCliTest, Refused) {
  const Answer answer = Run(CommandOf("validate", kKimi, {"--draft-backend", "flashmla"}));
  EXPECT_EQ(answer.code, kExitRefused);
  testing::ExpectGolden("cli/validate_refused.txt", answer.out);
  const Answer machine = Run(
      CommandOf("plan", kKimi, {"--draft-backend", "flashmla", "--kv-memory", "40GiB", "--output", "json"}));
  EXPECT_EQ(machine.code, kExitRefused);
  testing::ExpectGolden("cli/plan_refused.json", machine.out);
}

TEST_F(RunCliTest, AllRefusalsAreShownTogether) {
  const Answer answer = Run({"validate", "--target", "demo-target", "--draft", "kimi-k3-dspark", "--tp", "3",
                             "--dcp", "2", "--kv-cache-dtype", "int4", "--max-requests", "-1"});
  EXPECT_EQ(answer.code, kExitRefused);
  testing::ExpectGolden("cli/validate_many.txt", answer.out);
}

TEST_F(RunCliTest, Valid) {
  const Answer answer = Run(CommandOf("validate", kKimi, {}));
  EXPECT_EQ(answer.code, kExitOk);
  EXPECT_EQ(answer.out, "valid   98 layers, no rule is broken\n");
  const Answer machine = Run(CommandOf("validate", kKimi, {"--output=json"}));
  EXPECT_EQ(machine.code, kExitOk);
  EXPECT_EQ(nlohmann::json::parse(machine.out, nullptr, false)["verdict"], "valid");
}

TEST_F(RunCliTest, PlanIsStoredAndExplained) {
  const Answer text = Run(CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--output", "text"}));
  ASSERT_EQ(text.code, kExitOk);
  const std::string id = Sha256Hex(text.out);
  const fs::path stored = root_ / "kvasir" / "plans" / (id + ".txt");
  EXPECT_EQ(testing::ReadFile(stored.string()), text.out);
  int models = 0;
  for (const auto& entry : fs::directory_iterator(root_ / "kvasir" / "models")) {
    const auto model = testing::ReadFile(entry.path().string());
    EXPECT_EQ(Sha256Hex(model.value_or("")), entry.path().stem().string());
    ++models;
  }
  EXPECT_EQ(models, 2);
  const Answer by_prefix = Run({"explain", id.substr(0, 12)});
  EXPECT_EQ(by_prefix.code, kExitOk);
  testing::ExpectGolden("cli/explain.txt", by_prefix.out);
  EXPECT_EQ(Run({"explain", stored.string()}).out, by_prefix.out);
  EXPECT_EQ(Run({"explain", id, "--output", "text"}).out, text.out);
  const Answer topic = Run({"explain", id, "--topic", "graph", "--output", "json"});
  EXPECT_EQ(topic.code, kExitOk);
  const auto json = nlohmann::json::parse(topic.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["plan_id"], id);
  ASSERT_FALSE(json["lines"].empty());
  for (const auto& line : json["lines"]) EXPECT_EQ(line["topic"], "graph");
}

TEST_F(RunCliTest, ExplainRefusesWhatItCannotTrust) {
  const Answer text = Run(CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--output", "text"}));
  const std::string id = Sha256Hex(text.out);
  const fs::path folder = root_ / "kvasir" / "plans";
  EXPECT_THAT(Run({"explain", id.substr(0, 3)}).err, HasSubstr("4 to 64 digits"));
  EXPECT_THAT(Run({"explain", "../../etc/passwd.txt"}).err, HasSubstr("no file"));
  EXPECT_THAT(Run({"explain", "ffffffffffff"}).err, HasSubstr("no stored plan"));
  fs::copy_file(folder / (id + ".txt"), folder / (id.substr(0, 8) + std::string(56, '0') + ".txt"));
  EXPECT_THAT(Run({"explain", id.substr(0, 8)}).err, HasSubstr("2 stored plans begin with"));
  EXPECT_THAT(Run({"explain", id.substr(0, 8) + "0000"}).err, HasSubstr("was changed"));
  std::ofstream(folder / (id + ".txt"), std::ios::app) << "more\n";
  const Answer changed = Run({"explain", id});
  EXPECT_EQ(changed.code, kExitBadUsage);
  EXPECT_EQ(changed.out, "");
}

TEST_F(RunCliTest, NoSaveAndNoHome) {
  const std::vector<std::string> args = CommandOf("plan", kDemo, {"--kv-memory", "8MiB"});
  std::vector<std::string> no_save = args;
  no_save.push_back("--no-save");
  const Answer unsaved = Run(no_save);
  EXPECT_EQ(unsaved.code, kExitOk);
  EXPECT_THAT(unsaved.out, AllOf(HasSubstr("Not stored"), Not(HasSubstr("kvasir explain"))));
  EXPECT_FALSE(fs::exists(root_));
  variables_.clear();
  const Answer homeless = Run(args);
  EXPECT_EQ(homeless.code, kExitOk);  // the plan is the answer; storing it is a service
  EXPECT_THAT(homeless.err, HasSubstr("not stored"));
}

TEST_F(RunCliTest, BadUsage) {
  struct Case {
    std::vector<std::string> args;
    std::string part;
  };
  for (const Case& c : {
           Case{{}, "Usage: kvasir COMMAND"},
           Case{{"plna"}, "did you mean plan?"},
           Case{{"plan"}, "--target is missing"},
           Case{{"plan", "--target", "demo-target"}, "--kv-memory is missing"},
           Case{{"plan", "--targt", "x"}, "did you mean --target?"},
           Case{{"plan", "--target", "kimi-k4", "--kv-memory", "1GiB"}, "nearest: kimi-k2"},
           Case{{"plan", "--target", "/etc/hostname", "--kv-memory", "1GiB"}, "--target:"},
           Case{{"plan", "--target", "demo-target", "--kv-memory", "1XB"}, "unknown unit \"XB\""},
           Case{{"plan", "--target", "demo-target", "--kv-memory", "30"}, "write a unit, like 30GiB"},
           Case{{"plan", "--target", "demo-target", "--gpu", "h200"}, "--gpu h200: of ruleset native"},
           Case{{"validate", "--target", "demo-target", "--gpu", "bogus"}, "--gpu bogus: of ruleset native"},
           Case{{"plan", "--target", "demo-target", "--kv-memory", "1GiB", "--draft-tokens", "0"},
                "--draft-tokens 0: expected 1 to 32"},
           Case{{"plan", "--requests", "64"}, "did you mean --min-requests?"},
           Case{{"plan", "--max-model-len", "64"}, "did you mean --context?"},
           Case{{"solve", "requests", "--min-requests", "64"}, "did you mean --requests?"},
           Case{{"plan", "--target", "demo-target", "--kv-memory", "1GiB", "--context", "0"},
                "context \"0\""},
           Case{{"plan", "--target", "demo-target", "--kv-memory", "1GiB", "--tp", "two"},
                "expected an integer"},
           Case{{"plan", "--target", "demo-target", "--kv-memory", "1GiB", "--output", "xml"},
                "--output xml"},
           Case{{"validate", "--target", "demo-target", "--output", "text"}, "table or json"},
           Case{{"validate", "--target", "demo-target", "--trace"}, "unknown flag --trace"},
           Case{{"explain"}, "missing"},
           Case{{"explain", "abcd", "--topic", "weather"}, "--topic weather"},
           Case{{"models", "show"}, "list"},
           Case{{"models", "inspect", "nothing"}, "catalogue"},
           Case{{"version", "now"}, "unexpected word"},
       }) {
    const Answer answer = Run(c.args);
    EXPECT_EQ(answer.code, kExitBadUsage) << c.part;
    EXPECT_EQ(answer.out, "") << c.part;
    EXPECT_THAT(answer.err, HasSubstr(c.part));
  }
}

// Whoever redirects the text has no complaint for a plan.
TEST_F(RunCliTest, WithoutAPlanThereIsNoText) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--kv-memory", "1MiB"}, {"--kv-memory", "8MiB", "--draft-backend", "mine"}}) {
    std::vector<std::string> args = CommandOf("plan", kDemo, more);
    args.insert(args.end(), {"--output", "text"});
    const Answer answer = Run(args);
    EXPECT_NE(answer.code, kExitOk);
    EXPECT_EQ(answer.out, "");
    EXPECT_NE(answer.err, "");
  }
}

// What another rollback is said to admit, it admits.
TEST_F(RunCliTest, ARemedyOfAMisfitKeepsItsPromise) {
  const std::vector<std::string> words = {
      "plan", "--target",       "kimi-k3", "--draft",     "kimi-k3-dspark", "--tp",
      "8",    "--dcp",          "8",       "--kv-memory", "46.8GiB",        "--context",
      "8k",   "--min-requests", "150",     "--output",    "json",           "--state-rollback"};
  std::vector<std::string> snapshots = words;
  snapshots.emplace_back("snapshots");
  const auto misfit = nlohmann::json::parse(Run(snapshots).out);
  std::vector<std::string> replay = words;
  replay.emplace_back("replay");
  const auto plan = nlohmann::json::parse(Run(replay).out);
  ASSERT_EQ(misfit["remedies"][0]["flag"], "--state-rollback");
  EXPECT_EQ(misfit["remedies"][0]["requests"], plan["capacity"][0]["requests"]);
}

TEST_F(RunCliTest, ABatchIsNoSmallerThanWhatMustFit) {
  std::vector<std::string> args = CommandOf("plan", kDemo, {"--kv-memory", "64MiB", "--min-requests", "20"});
  args.insert(args.end(), {"--output", "text"});
  EXPECT_THAT(Run(args).out, HasSubstr("max_requests=20"));
}

TEST_F(RunCliTest, HelpNamesEveryCommandAndFlag) {
  const Answer help = Run({"--help"});
  EXPECT_EQ(help.code, kExitOk);
  for (const Command& command : Commands()) {
    EXPECT_THAT(help.out, HasSubstr(std::string(command.name)));
    if (command.run == nullptr) continue;
    const Answer own = Run({std::string(command.name), "--help"});
    EXPECT_EQ(own.code, kExitOk);
    EXPECT_THAT(own.out, HasSubstr("Usage: kvasir " + std::string(command.name)));
  }
  EXPECT_THAT(Run({"plan", "--help"}).out, HasSubstr("--kv-memory SIZE"));
}

TEST_F(RunCliTest, RemoteCommandsArePassedOnUnread) {
  for (const char* name : {"apply", "preflight", "decode", "status", "delete"}) {
    const std::vector<std::string> words = {name, "--anything", "x"};
    EXPECT_EQ(Run(words).code, kExitServiceFailure);
    EXPECT_EQ(remote_words_, words);
  }
  remote_words_.clear();
  Run({"plan", "--server=localhost:1"});
  EXPECT_EQ(remote_words_, (std::vector<std::string>{"plan", "--server=localhost:1"}));
}

TEST_F(RunCliTest, ColourOnlyWhereAsked) {
  const std::vector<std::string> args = CommandOf("validate", kDemo, {});
  EXPECT_THAT(Run(args, /*colour=*/true).out, HasSubstr("\x1b["));
  EXPECT_THAT(Run(args).out, Not(HasSubstr("\x1b[")));
}

TEST_F(RunCliTest, TraceShowsEveryStage) {
  const Answer answer = Run(CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--trace"}));
  for (const char* stage : {"canonical", "validated", "grouped", "packed", "sized", "graphed", "plan"}) {
    EXPECT_THAT(answer.err, HasSubstr(std::string("== ") + stage + "\n"));
  }
}

TEST_F(RunCliTest, Models) {
  const Answer list = Run({"models", "list"});
  EXPECT_EQ(list.code, kExitOk);
  testing::ExpectGolden("cli/models_list.txt", list.out);
  EXPECT_EQ(Run({"models"}).out, list.out);
  const Answer inspect = Run({"models", "inspect", "kimi-k3-dspark"});
  EXPECT_EQ(inspect.code, kExitOk);
  testing::ExpectGolden("cli/models_inspect.txt", inspect.out);
  // The canonical text is itself a model that can be named.
  const Answer text = Run({"models", "inspect", "demo-target", "--output", "text"});
  fs::create_directories(root_);
  const fs::path file = root_ / "model.txt";
  std::ofstream(file) << text.out;
  EXPECT_EQ(Run({"models", "inspect", file.string(), "--output", "text"}).out, text.out);
  const auto json =
      nlohmann::json::parse(Run({"models", "inspect", "kimi-k3", "--output", "json"}).out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["layers"].size(), 93U);
}

TEST_F(RunCliTest, InspectShowsKindsAndWhatTheyCost) {
  const Answer v4 = Run({"models", "inspect", "deepseek-v4-flash"});
  EXPECT_EQ(v4.code, kExitOk);
  testing::ExpectGolden("cli/models_inspect_v4.txt", v4.out);
  const Answer hybrid = Run({"models", "inspect", "qwen3.5-27b", "--tp", "8"});
  testing::ExpectGolden("cli/models_inspect_tp8.txt", hybrid.out);
  const Answer sharing = Run({"models", "inspect", "gemma-4-e2b"});
  testing::ExpectGolden("cli/models_inspect_sharing.txt", sharing.out);
  const Answer json = Run({"models", "inspect", "bart-large-cnn", "--output", "json"});
  testing::ExpectGolden("cli/models_inspect.json", json.out);
}

TEST_F(RunCliTest, InspectInJsonAddsUp) {
  const auto json = nlohmann::json::parse(
      Run({"models", "inspect", "deepseek-v4-flash", "--output", "json"}).out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["schema"], "kvasir.model/2");
  double token = 0;
  std::int64_t sequence = 0;
  for (const auto& kind : json["kinds"]) {
    const auto count = kind["count"].get<std::int64_t>();
    sequence += count * kind["bytes_per_sequence"].get<std::int64_t>();
    if (kind["tokens_kept"] == 0) {
      token +=
          static_cast<double>(count) * kind["row_bytes"].get<double>() / kind["tokens_per_row"].get<double>();
    }
  }
  EXPECT_EQ(json["bytes_per_token"].get<double>(), token);
  EXPECT_EQ(json["bytes_per_sequence"].get<std::int64_t>(), sequence);
  EXPECT_EQ(json["mtp"]["depth"], 1);
}

TEST_F(RunCliTest, InspectRefusesRanksThatCannotShare) {
  const Answer five = Run({"models", "inspect", "kimi-k3", "--tp", "5"});
  EXPECT_EQ(five.code, kExitBadUsage);
  EXPECT_THAT(five.err, HasSubstr("heads = 96"));
  EXPECT_EQ(Run({"models", "inspect", "kimi-k3", "--tp", "0"}).code, kExitBadUsage);
}

TEST_F(RunCliTest, Version) {
  const Answer answer = Run({"version"});
  EXPECT_EQ(answer.code, kExitOk);
  EXPECT_THAT(answer.out, HasSubstr("native vllm-2026-08 vllm-2026-11"));
  EXPECT_EQ(Run({"--version"}).out, answer.out);
}

}  // namespace
}  // namespace kvasir::cli
