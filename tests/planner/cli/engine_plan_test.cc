// kvasir plan under the vllm rulesets: pasted launch commands, our own flags, explicit specs.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "planner/cli/commands.h"
#include "planner/cli/run_cli.h"
#include "tests/planner/cli/run_kvasir.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::vector<std::string> Plan(std::vector<std::string> flags, const std::vector<std::string>& launch) {
  flags.insert(flags.begin(), "plan");
  flags.emplace_back("--");
  flags.insert(flags.end(), launch.begin(), launch.end());
  return flags;
}

const std::vector<std::string> kKimi = {
    "vllm",
    "serve",
    "moonshotai/Kimi-K3",
    "--tensor-parallel-size",
    "8",
    "-dcp",
    "8",
    "--kv-cache-dtype",
    "fp8",
    "--speculative-config",
    R"({"model":"Inferact/Kimi-K3-DSpark","method":"dspark","num_speculative_tokens":7})",
    "--max-model-len",
    "131072",
    "--port",
    "8000",
    "--max-num-sqs",
    "4"};

TEST(EnginePlanTest, APastedLaunchCommand) {
  const Answer answer = Kvasir(Plan({"--kv-memory", "46.8GiB"}, kKimi));
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  testing::ExpectGolden("cli/launch_fits.txt", answer.out);
  const Answer machine = Kvasir(Plan({"--kv-memory", "46.8GiB", "--output", "json"}, kKimi));
  EXPECT_EQ(machine.code, kExitOk);
  testing::ExpectGolden("cli/launch_fits.json", machine.out);
}

TEST(EnginePlanTest, ADeviceGivesARange) {
  const Answer answer = Kvasir(Plan({"--gpu", "h200", "--engine-release", "0.24.0"},
                                    {"vllm", "serve", "openai/gpt-oss-120b", "--max-model-len", "131072"}));
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  testing::ExpectGolden("cli/launch_range.txt", answer.out);
  const auto json = nlohmann::json::parse(
      Kvasir(Plan({"--gpu", "h200", "--output", "json"}, {"vllm", "serve", "openai/gpt-oss-120b"})).out,
      nullptr, false);
  EXPECT_LT(json["vllm"]["kv_cache_tokens"], json["vllm"]["kv_cache_tokens_most"]);
  EXPECT_TRUE(json["plan_id"].is_null());
  EXPECT_LT(json["memory"]["cache"]["least_bytes"], json["memory"]["cache"]["most_bytes"]);
}

TEST(EnginePlanTest, WhatDoesNotFitSaysWhatDoes) {
  const std::vector<std::string> launch = {"vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"};
  const Answer answer = Kvasir(Plan({"--kv-memory", "1GiB"}, launch));
  EXPECT_EQ(answer.code, kExitDoesNotFit);
  testing::ExpectGolden("cli/launch_does_not_fit.txt", answer.out);
  const Answer machine = Kvasir(Plan({"--kv-memory", "1GiB", "--output", "json"}, launch));
  const auto json = nlohmann::json::parse(machine.out, nullptr, false);
  EXPECT_EQ(json["verdict"], "does_not_fit");
  std::vector<std::string> shorter = launch;
  shorter.insert(shorter.end(), {"--max-model-len", json["remedies"][0]["value"].get<std::string>()});
  EXPECT_EQ(Kvasir(Plan({"--kv-memory", "1GiB"}, shorter)).code, kExitOk);
  shorter = launch;
  shorter.insert(shorter.end(), {"--max-model-len", "auto"});
  const Answer fitted = Kvasir(Plan({"--kv-memory", "1GiB", "--output", "json"}, shorter));
  EXPECT_EQ(fitted.code, kExitOk);
  EXPECT_EQ(nlohmann::json::parse(fitted.out, nullptr, false)["vllm"]["max_model_len"],
            json["longest_context_tokens"]);
}

TEST(EnginePlanTest, WhatTheEngineRefuses) {
  std::vector<std::string> launch = kKimi;
  launch.insert(launch.end(), {"--attention-backend", "FLASHMLA"});
  const Answer answer = Kvasir(Plan({"--kv-memory", "46.8GiB"}, launch));
  EXPECT_EQ(answer.code, kExitRefused);
  testing::ExpectGolden("cli/launch_refused.txt", answer.out);
  const Answer machine = Kvasir(Plan({"--kv-memory", "46.8GiB", "--output", "json"}, launch));
  EXPECT_EQ(machine.code, kExitRefused);
  EXPECT_EQ(nlohmann::json::parse(machine.out, nullptr, false)["refusals"][0]["field"],
            "--attention-backend");
}

TEST(EnginePlanTest, OurOwnFlagsUnderAnEngineRuleset) {
  const std::vector<std::string> flags = {
      "plan",        "--target", "kimi-k3",   "--draft", "kimi-k3-dspark",   "--tp", "8",        "--dcp", "8",
      "--kv-memory", "46.8GiB",  "--context", "128k",    "--kv-cache-dtype", "fp8",  "--output", "json"};
  for (const char* ruleset : {"vllm-2026-08", "vllm-2026-11"}) {
    std::vector<std::string> asked = flags;
    asked.insert(asked.end(), {"--ruleset", ruleset});
    const Answer answer = Kvasir(asked);
    EXPECT_EQ(answer.code, kExitOk) << answer.err;
    const auto json = nlohmann::json::parse(answer.out, nullptr, false);
    EXPECT_EQ(json["ruleset"], ruleset);
    // The launch command of the same question gives the same blocks.
    const auto launched = nlohmann::json::parse(
        Kvasir(Plan({"--kv-memory", "46.8GiB", "--output", "json", "--ruleset", ruleset}, kKimi)).out,
        nullptr, false);
    EXPECT_EQ(json["vllm"]["num_blocks"], launched["vllm"]["num_blocks"]);
    EXPECT_EQ(json["vllm"]["groups"].size(), 4U);
  }
}

TEST(EnginePlanTest, EmittedFlagsGiveTheSamePlan) {
  const std::vector<std::string> question = {"--target",    "kimi-k3", "--draft",   "kimi-k3-dspark",
                                             "--tp",        "8",       "--dcp",     "8",
                                             "--kv-memory", "46.8GiB", "--context", "128k"};
  std::vector<std::string> emit = {"plan", "--emit", "vllm"};
  emit.insert(emit.end(), question.begin(), question.end());
  const Answer command = Kvasir(emit);
  ASSERT_EQ(command.code, kExitOk) << command.err;
  testing::ExpectGolden("cli/emit_vllm.txt", command.out);
  std::vector<std::string> direct = {"plan", "--ruleset", "vllm-2026-11", "--output", "json"};
  direct.insert(direct.end(), question.begin(), question.end());
  const auto want = nlohmann::json::parse(Kvasir(direct).out, nullptr, false);
  const auto got = nlohmann::json::parse(
      Kvasir(Plan({"--output", "json"}, {command.out.substr(0, command.out.size() - 1)})).out, nullptr,
      false);
  EXPECT_EQ(got["vllm"]["num_blocks"], want["vllm"]["num_blocks"]);
  EXPECT_EQ(got["plan_id"], want["plan_id"]);
}

TEST(EnginePlanTest, WhatWasNotSaidIsListed) {
  const std::vector<std::string> launch = {"vllm", "serve", "kimi-k2", "--max-model-len", "4096"};
  EXPECT_THAT(Kvasir(Plan({"--kv-memory", "10GiB"}, launch)).out,
              HasSubstr("  blocks of 16 tokens; some latent"));
  EXPECT_THAT(Kvasir(Plan({"--kv-memory", "10GiB", "--gpu", "h200"}, launch)).out,
              ::testing::Not(HasSubstr("Assumed")));
}

// A model folder with an index, a launch file and explicit specs.
class EngineFilesTest : public ::testing::Test {
 protected:
  EngineFilesTest() : root_(fs::path(::testing::TempDir()) / "kvasir_engine_files") {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~EngineFilesTest() override { fs::remove_all(root_); }

  std::string Write(const std::string& name, const std::string& text) {
    const fs::path path = root_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  fs::path root_;
};

TEST_F(EngineFilesTest, ExplicitSpecs) {
  const std::string path = Write("case.json", R"({"specs": {"f": {"kind": "full", "block_size": 16,
      "num_kv_heads": 8, "head_size": 128, "dtype": "bfloat16"}},
      "layers": [{"name": "layers.0", "spec": "f"}, {"name": "layers.1", "spec": "f"}],
      "available_memory_bytes": [1073741824], "config": {"max_model_len": 8192, "block_size": 16}})");
  const Answer answer = Kvasir({"plan", "--specs", path});
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  testing::ExpectGolden("cli/launch_specs.txt", answer.out);
  EXPECT_EQ(Kvasir({"plan", "--specs", path, "--ruleset", "vllm-2026-08", "--output", "text"}).code, kExitOk);
  const Answer wrong = Kvasir({"plan", "--specs", Write("wrong.json", "{}")});
  EXPECT_EQ(wrong.code, kExitBadUsage);
  EXPECT_THAT(wrong.err, HasSubstr("wrong.json: specs is missing"));
}

TEST_F(EngineFilesTest, AModelFolderAndALaunchFile) {
  Write("config.json", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 1024,
      "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
      "vocab_size": 151936, "max_position_embeddings": 40960, "intermediate_size": 3072, "torch_dtype": "bfloat16",
      "rms_norm_eps": 1e-6, "rope_theta": 1000000, "tie_word_embeddings": true})");
  Write("model.safetensors.index.json", R"({"metadata": {"total_size": 1503300328}, "weight_map": {}})");
  const std::string file = Write("launch.yaml", "max-model-len: 16000\ngpu-memory-utilization: 0.9\n");
  const Answer answer = Kvasir(
      Plan({"--gpu", "l40s", "--output", "json"}, {"vllm", "serve", root_.string(), "--config", file}));
  ASSERT_EQ(answer.code, kExitOk) << answer.err;
  const auto json = nlohmann::json::parse(answer.out, nullptr, false);
  EXPECT_EQ(json["vllm"]["max_model_len"], 16000);
  EXPECT_EQ(json["memory"]["taken"][0]["least_bytes"], 1503300328);
  EXPECT_EQ(json["memory"]["taken"][0]["most_bytes"], 1503300328);
  // Half as many layers by --hf-overrides: twice the tokens.
  const auto halved = nlohmann::json::parse(Kvasir(Plan({"--kv-memory", "1GiB", "--output", "json"},
                                                        {"vllm", "serve", root_.string(), "--max-model-len",
                                                         "1000", "--hf-overrides.num_hidden_layers", "14"}))
                                                .out,
                                            nullptr, false);
  const auto whole =
      nlohmann::json::parse(Kvasir(Plan({"--kv-memory", "1GiB", "--output", "json"},
                                        {"vllm", "serve", root_.string(), "--max-model-len", "1000"}))
                                .out,
                            nullptr, false);
  EXPECT_EQ(halved["vllm"]["num_blocks"].get<int>(), 2 * whole["vllm"]["num_blocks"].get<int>());
}

TEST(EnginePlanTest, BadUsage) {
  struct Case {
    std::vector<std::string> args;
    std::string part;
  };
  for (const Case& c : {
           Case{{"plan", "vllm", "serve", "kimi-k3"}, "stands after \"--\""},
           Case{{"plan", "--", "vllm", "serve", "kimi-k3"}, "--kv-memory or --gpu is missing"},
           Case{{"plan", "--gpu", "h201", "--", "vllm", "serve", "kimi-k3"}, "nearest: h20"},
           Case{{"plan", "--kv-memory", "1GiB", "--", "vllm", "serve", "no-such/model"}, "--target CONFIG"},
           Case{{"plan", "--kv-memory", "1GiB", "--", "vllm", "serve", "kimi-k3", "-tp", "x"},
                "whole number"},
           Case{{"plan", "--kv-memory", "1GiB", "--ruleset", "native", "--", "vllm", "serve", "kimi-k3"},
                "vllm-2026-08 or vllm-2026-11"},
           Case{{"plan", "--kv-memory", "1GiB", "--engine-release", "soon", "--", "vllm", "serve", "kimi-k3"},
                "release like 0.24.0"},
           Case{{"plan", "--emit", "sglang", "--target", "kimi-k3"}, "only vllm is known"},
           Case{{"plan", "--specs", "/no/such/file"}, "cannot be opened"},
       }) {
    const Answer answer = Kvasir(c.args);
    EXPECT_EQ(answer.code, kExitBadUsage) << c.part;
    EXPECT_THAT(answer.err, HasSubstr(c.part));
    EXPECT_EQ(answer.out, "");
  }
}

}  // namespace
}  // namespace kvasir::cli
