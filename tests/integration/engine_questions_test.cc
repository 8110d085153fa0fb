// `kvasir plan` about an engine, asked of a real planner process and answered as if it had been asked here.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/integration/cluster.h"
#include "tests/testing/process.h"

namespace kvasir {
namespace {

using testing::Finished;
using Words = std::vector<std::string>;

class EngineQuestionsTest : public ::testing::Test {
 protected:
  // Here and there, in one output form.
  void ExpectTheSame(Words words, const std::string& form, int exit_code) {
    words.insert(words.begin(), {testing::BinaryPath("kvasir"), "plan", "--output", form, "--ruleset",
                                 "vllm-2026-08", "--no-save"});
    const Finished here = testing::RunToEnd(words);
    words.insert(words.begin() + 2, {"--server", planner_.address});
    const Finished there = testing::RunToEnd(words);
    EXPECT_EQ(here.exit_code, exit_code) << here.output;
    EXPECT_EQ(there.exit_code, exit_code) << there.output;
    EXPECT_EQ(there.output, here.output);
  }

  testing::TempDir state_;
  testing::PlannerServer planner_ = testing::StartPlanner(state_.path());
};

const Words kLaunch = {"--",
                       "vllm",
                       "serve",
                       "moonshotai/Kimi-K3",
                       "-tp",
                       "8",
                       "-dcp",
                       "8",
                       "--max-model-len",
                       "131072",
                       "--speculative-config",
                       R"({"model":"Inferact/Kimi-K3-DSpark","method":"dspark","num_speculative_tokens":7})"};

TEST_F(EngineQuestionsTest, ALaunchCommand) {
  Words words = {"--kv-memory", "46.8GiB"};
  words.insert(words.end(), kLaunch.begin(), kLaunch.end());
  ExpectTheSame(words, "text", 0);
}

TEST_F(EngineQuestionsTest, ALaunchThatDoesNotFit) {
  Words words = {"--kv-memory", "64MiB"};
  words.insert(words.end(), kLaunch.begin(), kLaunch.end());
  ExpectTheSame(words, "text", 3);
}

TEST_F(EngineQuestionsTest, OurOwnFlags) {
  ExpectTheSame({"--target", "kimi-k3", "--draft", "kimi-k3-dspark", "--tp", "8", "--dcp", "8", "--kv-memory",
                 "46.8GiB", "--context", "131072"},
                "text", 0);
}

TEST_F(EngineQuestionsTest, ExplicitSpecs) {
  const std::string path = state_.path() + "/case.json";
  std::ofstream(path) << R"({
    "specs": {"m": {"kind": "mla", "block_size": 64, "num_kv_heads": 1, "head_size": 576, "dtype": "bfloat16"}},
    "layers": [{"name": "model.layers.0.attn", "spec": "m"}],
    "available_memory_bytes": [1073741824],
    "config": {"max_model_len": 4096, "block_size": 64}})";
  ExpectTheSame({"--specs", path}, "text", 0);
}

TEST_F(EngineQuestionsTest, AServiceShowsGroupsAndLogLines) {
  Words words = {
      testing::BinaryPath("kvasir"), "plan", "--server", planner_.address, "--kv-memory", "46.8GiB"};
  words.insert(words.end(), kLaunch.begin(), kLaunch.end());
  const Finished table = testing::RunToEnd(words);
  EXPECT_EQ(table.exit_code, 0) << table.output;
  EXPECT_NE(table.output.find("GPU KV cache size: "), std::string::npos) << table.output;
  EXPECT_NE(table.output.find("MambaSpec"), std::string::npos) << table.output;
  words.insert(words.begin() + 2, {"--output", "json"});
  const Finished json = testing::RunToEnd(words);
  EXPECT_EQ(json.exit_code, 0) << json.output;
  EXPECT_NE(json.output.find(R"("schema": "kvasir.plan/1")"), std::string::npos) << json.output;
  EXPECT_NE(json.output.find(R"("num_blocks": )"), std::string::npos) << json.output;
}

TEST_F(EngineQuestionsTest, AWrongWordIsTheCallersMistake) {
  const Finished finished =
      testing::RunToEnd({testing::BinaryPath("kvasir"), "plan", "--server", planner_.address, "--kv-memory",
                         "1GiB", "--", "vllm", "serve", "who/knows"});
  EXPECT_EQ(finished.exit_code, 2) << finished.output;
  EXPECT_NE(finished.output.find("MODEL_UNKNOWN"), std::string::npos) << finished.output;
}

}  // namespace
}  // namespace kvasir
