// kvasir validate under the vllm rulesets: a verdict without any memory, and the ways out of a refusal.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
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
using ::testing::Not;

// One launch command in one word, split as a shell does.
Answer Validate(const std::string& launch, std::vector<std::string> flags = {}) {
  flags.insert(flags.begin(), "validate");
  flags.insert(flags.end(), {"--", launch});
  return Kvasir(flags);
}

nlohmann::json ValidateJson(const std::string& launch) {
  return nlohmann::json::parse(Validate(launch, {"--output", "json"}).out, nullptr, false);
}

const std::string kKimi =
    "vllm serve moonshotai/Kimi-K3 --tensor-parallel-size 8 -dcp 8 --kv-cache-dtype fp8 --max-model-len "
    "131072 "
    "--speculative-config "
    "'{\"model\":\"Inferact/Kimi-K3-DSpark\",\"method\":\"dspark\",\"num_speculative_tokens\":7}'";

struct VerdictCase {
  std::string what;
  std::string launch;
  int code = 0;
  std::string field = {};    // of the refusal; empty: valid
  std::string instead = {};  // one of the ways out
};
void PrintTo(const VerdictCase& c, std::ostream* out) { *out << c.what; }

class EngineVerdictTest : public ::testing::TestWithParam<VerdictCase> {};

TEST_P(EngineVerdictTest, WithoutMemory) {
  const VerdictCase& c = GetParam();
  EXPECT_EQ(Validate(c.launch).code, c.code) << Validate(c.launch).err;
  if (c.code == kExitBadUsage) return;
  const nlohmann::json json = ValidateJson(c.launch);
  EXPECT_EQ(json["schema"], "kvasir.validate/1");
  EXPECT_EQ(json["verdict"], c.code == kExitOk ? "valid" : "refused");
  if (c.code == kExitOk) {
    EXPECT_TRUE(json["refusals"].empty());
    EXPECT_TRUE(json["accepted_instead"].empty());
    return;
  }
  ASSERT_EQ(json["refusals"].size(), 1U);
  EXPECT_EQ(json["refusals"][0]["field"], c.field);
  if (c.instead.empty()) return;
  const auto ways = json["accepted_instead"].get<std::vector<std::string>>();
  EXPECT_NE(std::find(ways.begin(), ways.end(), c.instead), ways.end()) << json["accepted_instead"].dump();
  // What is offered is accepted: an added flag wins over an earlier one of the same name.
  for (const std::string& way : ways) {
    if (way.starts_with("--")) {
      EXPECT_EQ(Validate(c.launch + " " + way).code, kExitOk) << way;
    }
  }
}

constexpr const char* kHeads = "--tensor-parallel-size";
constexpr const char* kShards = "--decode-context-parallel-size";

INSTANTIATE_TEST_SUITE_P(
    All, EngineVerdictTest,
    ::testing::Values(
        VerdictCase{
            "an unknown draft method",
            "vllm serve Qwen/Qwen3-8B --speculative-config "
            "'{\"method\":\"dflahs\",\"model\":\"z-lab/Qwen3-8B-DFlash-b16\",\"num_speculative_tokens\":5}'",
            kExitRefused, "--speculative-config.method"},
        VerdictCase{
            "a draft of other tensor parallelism",
            "vllm serve Qwen/Qwen3-8B -tp 4 --speculative-config "
            "'{\"method\":\"dflash\",\"model\":\"z-lab/Qwen3-8B-DFlash-b16\",\"num_speculative_tokens\":5,"
            "\"draft_tensor_parallel_size\":2}'",
            kExitRefused, "--speculative-config.draft_tensor_parallel_size"},
        VerdictCase{
            "a draft of another target",
            "vllm serve Qwen/Qwen3-14B --speculative-config "
            "'{\"method\":\"dflash\",\"model\":\"z-lab/Qwen3-8B-DFlash-b16\",\"num_speculative_tokens\":5}'",
            kExitRefused, "--speculative-config.model", "no --speculative-config"},
        VerdictCase{
            "a draft model of another vocabulary",
            "vllm serve meta-llama/Llama-3.1-70B-Instruct --speculative-config "
            "'{\"method\":\"draft_model\",\"model\":\"Qwen/Qwen3-0.6B\",\"num_speculative_tokens\":3}'",
            kExitRefused, "--speculative-config.model", "no --speculative-config"},
        VerdictCase{"a batch of fewer tokens than sequences",
                    "vllm serve Qwen/Qwen3-8B --max-num-batched-tokens 100 --max-num-seqs 256", kExitRefused,
                    "--max-num-batched-tokens"},
        VerdictCase{"a batch shorter than a prompt that may not be cut",
                    "vllm serve Qwen/Qwen3-8B --max-num-batched-tokens 4096 --max-num-seqs 8 "
                    "--no-enable-chunked-prefill --max-model-len 8192",
                    kExitRefused, "--max-num-batched-tokens"},
        VerdictCase{"kimi-k3 with its draft", kKimi},
        VerdictCase{"a backend that the draft cannot use", kKimi + " --attention-backend FLASHMLA",
                    kExitRefused, "--attention-backend", "--attention-backend TOKENSPEED_MLA"},
        VerdictCase{"a backend without a log-sum-exp",
                    "vllm serve kimi-k2 -tp 8 -dcp 8 --attention-backend ROCM_AITER_MLA", kExitRefused,
                    "--attention-backend", "--decode-context-parallel-size 1"},
        VerdictCase{"the same unsharded", "vllm serve kimi-k2 -tp 8 --attention-backend ROCM_AITER_MLA"},
        VerdictCase{"heads that ranks do not divide", "vllm serve qwen3-14b -tp 3", kExitRefused, kHeads,
                    "--tensor-parallel-size 4"},
        VerdictCase{"ranks that a sharded context does not divide", "vllm serve kimi-k2 -tp 8 -dcp 3",
                    kExitRefused, kShards, "--decode-context-parallel-size 4"},
        VerdictCase{"key-value heads that need no sharing", "vllm serve qwen3-14b -tp 8 -dcp 2", kExitRefused,
                    kShards, "--decode-context-parallel-size 1"},
        VerdictCase{"more shards than ranks of one head", "vllm serve llama-3.1-70b -tp 16 -dcp 4",
                    kExitRefused, kShards, "--decode-context-parallel-size 2"},
        VerdictCase{"shards within one head", "vllm serve llama-3.1-70b -tp 16 -dcp 2"},
        VerdictCase{"runs that blocks do not hold",
                    "vllm serve kimi-k2 -tp 8 -dcp 8 --block-size 64 --cp-kv-cache-interleave-size 48",
                    kExitRefused, "--cp-kv-cache-interleave-size", "--cp-kv-cache-interleave-size 1"},
        VerdictCase{"blocks that a backend does not take",
                    "vllm serve kimi-k2 --attention-backend FLASHMLA --block-size 16", kExitRefused,
                    "--attention-backend", "--block-size 64"},
        VerdictCase{"a cache that a backend does not read",
                    "vllm serve kimi-k2 --attention-backend FLASH_ATTN_MLA --kv-cache-dtype fp8",
                    kExitRefused, "--attention-backend", "--kv-cache-dtype auto"},
        VerdictCase{"graphs that a backend does not keep",
                    "vllm serve kimi-k2 --attention-backend CPU_MLA -cc.cudagraph_mode FULL", kExitRefused,
                    "--compilation-config.cudagraph_mode", "--compilation-config.cudagraph_mode PIECEWISE"},
        VerdictCase{"a length over the model's", "vllm serve qwen3-8b --max-model-len 99999", kExitRefused,
                    "--max-model-len", "--max-model-len 40960"},
        VerdictCase{"a draft without tokens",
                    "vllm serve llama-3.1-8b -sc.method eagle3 -sc.model yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
                    kExitRefused, "--speculative-config.num_speculative_tokens"},
        VerdictCase{"tokens with nothing to draft them", "vllm serve qwen3-8b -sc.num_speculative_tokens 4",
                    kExitRefused, "--speculative-config.method"},
        VerdictCase{"MTP by name without tokens", "vllm serve deepseek-v3 -tp 8 -sc.method mtp", kExitRefused,
                    "--speculative-config.num_speculative_tokens"},
        VerdictCase{"MTP of the checkpoint named again",
                    "vllm serve deepseek-v3 -tp 8 -sc.model deepseek-ai/DeepSeek-V3"},
        VerdictCase{"n-grams written as a model",
                    "vllm serve qwen3-8b -sc.model [ngram] -sc.num_speculative_tokens 4"},
        VerdictCase{"suffixes have a number of their own", "vllm serve qwen3-8b -sc.method suffix"},
        VerdictCase{"a backend that runs no non-causal blocks, unsharded",
                    "vllm serve kimi-k3 -tp 8 --attention-backend FLASHMLA -sc.method dspark -sc.model "
                    "Inferact/Kimi-K3-DSpark -sc.num_speculative_tokens 7",
                    kExitRefused, "--attention-backend", "--attention-backend TRITON_MLA"},
        VerdictCase{"a batch below the usual number of sequences",
                    "vllm serve qwen3-8b --max-num-batched-tokens 128"},
        VerdictCase{"shards of all ranks that prefill", "vllm serve kimi-k2 -tp 8 -pcp 2 -dcp 16"},
        VerdictCase{"shards of some ranks that prefill", "vllm serve kimi-k2 -tp 8 -pcp 2 -dcp 4",
                    kExitRefused, kShards, "--decode-context-parallel-size 2"},
        VerdictCase{"a length over the window that is left",
                    "vllm serve google/gemma-3-27b-it --disable-sliding-window --max-model-len 4096",
                    kExitRefused, "--max-model-len"},
        VerdictCase{"blocks that an indexer does not take",
                    "vllm serve deepseek-ai/DeepSeek-V3.2 --block-size 16", kExitRefused, "--block-size",
                    "--block-size 64"},
        VerdictCase{"compressed rows with a sparse backend",
                    "vllm serve deepseek-ai/DeepSeek-V4-Pro --attention-backend FLASHMLA_SPARSE"},
        VerdictCase{"a copy, whose length is not known",
                    "vllm serve someone/Qwen3-8B-AWQ --max-model-len 99999"},
        VerdictCase{"a model that nobody knows", "vllm serve nobody/nothing", kExitBadUsage},
        VerdictCase{"no launch command", "rm -rf /", kExitBadUsage}));

struct DeviceCase {
  std::string what;
  std::string launch;
  std::string gpu;
  int code = 0;
  std::string part = {};  // of the refusal
};

// With a device: what its kernels are for, and what the engine takes where no backend is named.
TEST(EngineValidateTest, ADeviceIsJudgedWithItsBackends) {
  const std::string kimi_bf16 =
      "vllm serve moonshotai/Kimi-K3 -tp 8 -dcp 8 -sc.method dspark -sc.model "
      "Inferact/Kimi-K3-DSpark -sc.num_speculative_tokens 7";
  for (const DeviceCase& c : {
           DeviceCase{"kernels of another device",
                      "vllm serve kimi-k2 -tp 8 --attention-backend TOKENSPEED_MLA "
                      "--kv-cache-dtype fp8",
                      "h200", kExitRefused, "does not run on NVIDIA H200"},
           DeviceCase{"the same on theirs",
                      "vllm serve kimi-k2 -tp 8 --attention-backend TOKENSPEED_MLA "
                      "--kv-cache-dtype fp8",
                      "b200"},
           DeviceCase{"a choice that combines no shards", "vllm serve qwen3-8b -tp 8 -dcp 1", "mi300x"},
           DeviceCase{"without log-sum-exp", "vllm serve llama-3.1-70b -tp 16 -dcp 2", "mi300x", kExitRefused,
                      "the engine's choice ROCM_ATTN returns no log-sum-exp"},
           DeviceCase{"non-causal blocks that no kernel shards", kimi_bf16, "h200", kExitRefused,
                      "no backend on NVIDIA H200"},
           DeviceCase{"that one kernel shards", kKimi, "gb300"},
       }) {
    SCOPED_TRACE(c.what);
    const Answer answer = Validate(c.launch, {"--gpu", c.gpu});
    EXPECT_EQ(answer.code, c.code) << answer.out << answer.err;
    EXPECT_THAT(answer.out, HasSubstr(c.part));
  }
}

// Whatever a refusal offers in place of a backend, no other check about that backend takes it back.
TEST(EngineValidateTest, OfferedBackendsAreNotRefusedInTheirTurn) {
  int offered = 0;
  const std::string head = "use one of ";
  for (const std::string gpu : {"h200", "b200", "mi355x"}) {
    for (const std::string backend :
         {"FLASHMLA", "TRITON_MLA", "FLASH_ATTN_MLA", "CUTLASS_MLA", "FLASH_ATTN"}) {
      const std::string launch = kKimi + " --attention-backend ";
      const nlohmann::json json = nlohmann::json::parse(
          Validate(launch + backend, {"--gpu", gpu, "--output", "json"}).out, nullptr, false);
      if (json["refusals"].empty()) continue;
      const std::string message = json["refusals"][0]["message"];
      const std::size_t at = message.find(head);
      if (at == std::string::npos) continue;
      std::istringstream names(message.substr(at + head.size()));
      for (std::string name; std::getline(names >> std::ws, name, ',');) {
        ++offered;
        const Answer answer = Validate(launch + name, {"--gpu", gpu});
        EXPECT_THAT(answer.out, Not(HasSubstr("--attention-backend " + name))) << gpu << ": " << message;
      }
    }
  }
  EXPECT_GT(offered, 0);
}

TEST(EngineValidateTest, APipelineMayRefuseFlagsThatAreNotKnown) {
  const std::string launch = "vllm serve Qwen/Qwen3-8B --max-modl-len 4096";
  EXPECT_EQ(Validate(launch).code, kExitOk);
  const Answer strict = Validate(launch, {"--strict-flags"});
  EXPECT_EQ(strict.code, kExitRefused);
  EXPECT_THAT(strict.out, HasSubstr("--max-modl-len 4096 (did you mean max-model-len?)"));
  EXPECT_THAT(strict.out, Not(HasSubstr("Accepted instead")));
  EXPECT_EQ(Validate("vllm serve Qwen/Qwen3-8B --max-model-len 4096", {"--strict-flags"}).code, kExitOk);
}

TEST(EngineValidateTest, OverridesLengthenACataloguedModel) {
  const std::string launch = "vllm serve Qwen/Qwen3-8B --max-model-len 131072";
  EXPECT_EQ(Validate(launch).code, kExitRefused);
  const std::string yarn =
      " --hf-overrides '{\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, "
      "\"original_max_position_embeddings\": 32768}}'";
  EXPECT_EQ(Validate(launch + yarn).code, kExitOk) << Validate(launch + yarn).out;
}

TEST(EngineValidateTest, AValidCommandAndARefusedOne) {
  const Answer valid = Validate(kKimi + " --port 8000 --max-num-sqs 4");
  EXPECT_EQ(valid.code, kExitOk) << valid.err;
  testing::ExpectGolden("cli/validate_launch.txt", valid.out);
  const Answer refused = Validate(kKimi + " --attention-backend FLASHMLA", {"--output", "json"});
  EXPECT_EQ(refused.code, kExitRefused);
  testing::ExpectGolden("cli/validate_launch_refused.json", refused.out);
}

TEST(EngineValidateTest, ADraftWithoutACacheNeedNotBeKnown) {
  const Answer answer = Validate(
      "vllm serve llama-3.1-8b -sc.method medusa -sc.model someone/medusa-heads -sc.num_speculative_tokens "
      "3");
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("someone/medusa-heads is not known here; a medusa draft keeps no cache"));
}

TEST(EngineValidateTest, AGraphModeThatTheEngineLowersIsAWarning) {
  const std::string launch = "vllm serve kimi-k2 --attention-backend FLASHMLA -cc.cudagraph_mode ";
  EXPECT_THAT(Validate(launch + "FULL").out, HasSubstr("cudagraph_mode FULL becomes FULL_AND_PIECEWISE"));
  EXPECT_THAT(Validate(launch + "FULL_DECODE_ONLY").out, Not(HasSubstr("becomes")));
  EXPECT_THAT(
      Validate("vllm serve deepseek-v3 --attention-backend CUTLASS_MLA -cc.cudagraph_mode FULL_DECODE_ONLY "
               "-sc.method mtp -sc.num_speculative_tokens 1")
          .out,
      HasSubstr("FULL_DECODE_ONLY becomes PIECEWISE"));
}

TEST(EngineValidateTest, OurOwnFlagsAndTheTargetsOwnLayers) {
  const std::vector<std::string> flags = {"validate", "--target", "deepseek-v3", "--draft",     "mtp",
                                          "--tp",     "8",        "--ruleset",   "vllm-2026-11"};
  const Answer answer = Kvasir(flags);
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("deepseek-ai/DeepSeek-V3 (mtp, 1 tokens)"));
  const Answer none = Kvasir({"validate", "--target", "llama-3.1-8b", "--draft", "mtp"});
  EXPECT_EQ(none.code, kExitBadUsage);
  EXPECT_THAT(none.err, HasSubstr("--draft mtp: model meta-llama/Llama-3.1-8B-Instruct has no layers"));
}

TEST(EngineValidateTest, OwnLayersAsADraftInAPlanOfOurs) {
  const fs::path state = fs::path(::testing::TempDir()) / "kvasir_mtp";
  fs::remove_all(state);
  std::ostringstream out;
  std::ostringstream err;
  const auto variable = [&](std::string_view name) -> std::optional<std::string> {
    return name == "XDG_STATE_HOME" ? std::optional(state.string()) : std::nullopt;
  };
  const auto remote = [](const std::vector<std::string>&) { return kExitServiceFailure; };
  const Console console{out, err, false, variable, remote};
  EXPECT_EQ(RunCli(std::vector<std::string>{"plan", "--target", "deepseek-v3", "--draft", "mtp", "--tp", "8",
                                            "--kv-memory", "40GiB", "--context", "8k", "--output", "json"},
                   console),
            kExitOk)
      << err.str() << out.str();
  const auto json = nlohmann::json::parse(out.str(), nullptr, false);
  EXPECT_EQ(json["draft"]["name"], "deepseek-ai/DeepSeek-V3-mtp");
  EXPECT_EQ(json["draft_tokens"], 1);
  out.str("");
  EXPECT_EQ(
      RunCli(std::vector<std::string>{"explain", json["plan_id"].get<std::string>().substr(0, 12)}, console),
      kExitOk)
      << err.str();
  EXPECT_THAT(out.str(), HasSubstr("draft"));
  fs::remove_all(state);
}

TEST(EngineValidateTest, ExplicitSpecs) {
  const fs::path folder = fs::path(::testing::TempDir()) / "kvasir_validate_specs";
  fs::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& layers) {
    const fs::path path = folder / name;
    std::ofstream(path, std::ios::binary)
        << R"({"specs": {"f": {"kind": "full", "block_size": 16, "num_kv_heads": 8, "head_size": 128,
               "dtype": "bfloat16"},
             "c": {"kind": "full", "block_size": 48, "num_kv_heads": 8, "head_size": 96, "dtype": "bfloat16"}},
             "layers": [)"
        << layers
        << R"(], "available_memory_bytes": [4096], "config": {"max_model_len": 8192, "block_size": 16}})";
    return path.string();
  };
  const std::string good = write("good.json", R"({"name": "a", "spec": "f"}, {"name": "b", "spec": "f"})");
  EXPECT_EQ(Kvasir({"plan", "--specs", good}).code, kExitDoesNotFit);
  const Answer valid = Kvasir({"validate", "--specs", good});
  EXPECT_EQ(valid.code, kExitOk) << valid.err;
  EXPECT_THAT(valid.out, HasSubstr("valid   vllm-2026-11 · 2 layers · TP 1 × DCP 1"));
  const Answer json = Kvasir({"validate", "--specs", good, "--ruleset", "vllm-2026-08", "--output", "json"});
  EXPECT_EQ(nlohmann::json::parse(json.out, nullptr, false)["ruleset"], "vllm-2026-08");
  const Answer none = Kvasir({"validate", "--specs", (folder / "none.json").string()});
  EXPECT_EQ(none.code, kExitBadUsage);
  EXPECT_THAT(none.err, HasSubstr("kvasir validate: "));
  fs::remove_all(folder);
}

TEST(EngineValidateTest, WordsOutsideOfALaunchCommandAreBadUsage) {
  EXPECT_EQ(Kvasir({"validate", "vllm", "serve", "kimi-k2"}).code, kExitBadUsage);
  EXPECT_EQ(Validate("vllm serve kimi-k2", {"--output", "text"}).code, kExitBadUsage);
}

}  // namespace
}  // namespace kvasir::cli
