#include "planner/request/launch_command.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/request/launch_flags.h"
#include "planner/request/launch_split.h"
#include "planner/request/launch_text.h"
#include "planner/request/launch_values.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ReadLaunchFile kNoFile;

absl::StatusOr<LaunchCommand> Parse(const std::string& text, const std::string& file = "") {
  const absl::StatusOr<std::vector<std::string>> words = SplitCommand(text);
  if (!words.ok()) return words.status();
  return ParseLaunchCommand(*words, [&](std::string_view path) -> absl::StatusOr<std::string> {
    if (path != "launch.yaml") return absl::NotFoundError("no such file");
    return file;
  });
}

struct OptionCase {
  std::string text;
  std::function<void(LaunchOptions&)> want;
};
void PrintTo(const OptionCase& c, std::ostream* out) { *out << c.text; }

class LaunchOptionTest : public ::testing::TestWithParam<OptionCase> {};

TEST_P(LaunchOptionTest, IsReadAndWritten) {
  const auto command = Parse("vllm serve m " + GetParam().text);
  KVASIR_ASSERT_OK(command);
  LaunchOptions want;
  want.model = "m";
  GetParam().want(want);
  EXPECT_EQ(command->options, want) << JoinCommand(LaunchWords(command->options));
  EXPECT_THAT(command->unknown, IsEmpty());
  EXPECT_THAT(command->not_about_cache, IsEmpty());
  const auto again = ParseLaunchCommand(LaunchWords(command->options), kNoFile);
  KVASIR_ASSERT_OK(again);
  EXPECT_EQ(again->options, want);
}

using O = LaunchOptions;
INSTANTIATE_TEST_SUITE_P(
    All, LaunchOptionTest,
    ::testing::Values(
        OptionCase{"--tensor-parallel-size 8", [](O& o) { o.tensor_parallel = 8; }},
        OptionCase{"--tensor_parallel_size=8", [](O& o) { o.tensor_parallel = 8; }},
        OptionCase{"-tp 8 -pp=2 -dp 4 -dcp 8 -pcp 1",
                   [](O& o) {
                     o.tensor_parallel = 8;
                     o.pipeline_parallel = 2;
                     o.data_parallel = 4;
                     o.decode_context_parallel = 8;
                     o.prefill_context_parallel = 1;
                   }},
        OptionCase{"-tp 4 -tp 8", [](O& o) { o.tensor_parallel = 8; }},
        OptionCase{"--tensor-parallel 8", [](O& o) { o.tensor_parallel = 8; }},
        OptionCase{"--max-model-len 128k", [](O& o) { o.max_model_len = 128000; }},
        OptionCase{"--max-model-len 128K", [](O& o) { o.max_model_len = 131072; }},
        OptionCase{"--max-model-len 25.6k", [](O& o) { o.max_model_len = 25600; }},
        OptionCase{"--max-model-len auto", [](O& o) { o.max_model_len = kFitMaxModelLen; }},
        OptionCase{"--max-model-len -1", [](O& o) { o.max_model_len = kFitMaxModelLen; }},
        OptionCase{"--kv-cache-memory-bytes 40G",
                   [](O& o) { o.kv_cache_memory_bytes = std::int64_t{40} << 30; }},
        OptionCase{"--max-num-seqs None", [](O&) {}},
        OptionCase{"--gpu-memory-utilization 0.92", [](O& o) { o.gpu_memory_utilization = 0.92; }},
        OptionCase{"--enable-prefix-caching --no-async-scheduling",
                   [](O& o) {
                     o.prefix_caching = true;
                     o.async_scheduling = false;
                   }},
        OptionCase{"--kv-cache-dtype-skip-layers 0 1 sliding_window -tp 2",
                   [](O& o) {
                     o.kv_cache_dtype_skip_layers = {"0", "1", "sliding_window"};
                     o.tensor_parallel = 2;
                   }},
        OptionCase{"--speculative-config '{\"method\": \"dspark\", \"model\": \"d\", "
                   "\"num_speculative_tokens\": 7}'",
                   [](O& o) {
                     o.spec_method = "dspark";
                     o.spec_model = "d";
                     o.spec_tokens = 7;
                   }},
        OptionCase{"--speculative-config.method mtp --speculative_config.num_speculative_tokens=3",
                   [](O& o) {
                     o.spec_method = "mtp";
                     o.spec_tokens = 3;
                   }},
        OptionCase{"--spec-method eagle3 --spec-tokens 2",
                   [](O& o) {
                     o.spec_method = "eagle3";
                     o.spec_tokens = 2;
                   }},
        OptionCase{"-cc.cudagraph_capture_sizes+ 1,2,4 -cc.cudagraph_mode FULL",
                   [](O& o) {
                     o.cudagraph_capture_sizes = {1, 2, 4};
                     o.cudagraph_mode = "FULL";
                   }},
        OptionCase{"-ac.backend FLASHMLA", [](O& o) { o.attention_backend = "FLASHMLA"; }},
        OptionCase{"--hf-overrides '{\"b\": 1, \"a\": {\"c\": 80m}}'",
                   [](O& o) { o.hf_overrides = R"({"a":{"c":80000000},"b":1})"; }},
        OptionCase{
            "--kv-transfer-config.kv_connector X --kv-transfer-config.kv_connector_extra_config.y true",
            [](O& o) {
              o.kv_connector = "X";
              o.kv_connector_extra_config = R"({"y":true})";
            }},
        OptionCase{"--config launch.yaml", [](O&) {}}));

TEST(LaunchCommandTest, TheCommandOfTheFrontPage) {
  const auto command = Parse(
      "VLLM_ATTENTION_BACKEND=TOKENSPEED_MLA HF_TOKEN=x nohup python3 -O -m "
      "vllm.entrypoints.openai.api_server "
      "--model moonshotai/Kimi-K3 --tensor-parallel-size 8 --port 8000 --max-modle-len 4096 "
      "--trust-remote-code "
      "> log.txt 2>&1 &");
  KVASIR_ASSERT_OK(command);
  EXPECT_EQ(command->options.model, "moonshotai/Kimi-K3");
  EXPECT_EQ(command->options.attention_backend, "TOKENSPEED_MLA");
  EXPECT_EQ(command->options.optimized_python, true);
  EXPECT_THAT(command->unknown, ElementsAre(UnknownFlag{"--max-modle-len 4096", "max-model-len"}));
  EXPECT_THAT(command->not_about_cache, ElementsAre("HF_TOKEN=x", "--port 8000", "--trust-remote-code"));
  EXPECT_THAT(command->notes, ElementsAre("skipped: nohup"));
}

TEST(LaunchCommandTest, OnePastedTextIsSplit) {
  const std::vector<std::string> words = {"vllm serve 'a b' \\\n  -tp 2  # two"};
  const auto command = ParseLaunchCommand(words, kNoFile);
  KVASIR_ASSERT_OK(command);
  EXPECT_EQ(command->options.model, "a b");
  EXPECT_EQ(command->options.tensor_parallel, 2);
}

TEST(LaunchCommandTest, AConfigurationFileStandsBelowTheCommand) {
  const std::string file =
      "model: from-file\ntensor-parallel-size: 4\nenable_prefix_caching: no\nmax-model-len: 64K\n"
      "kv-cache-dtype: fp8\nspeculative-config:\n  method: mtp\n  num_speculative_tokens: 1\n"
      "cudagraph-capture-sizes: [1, 2]\nblock-size: null\n";
  const auto command = Parse("vllm serve -tp 8 --config launch.yaml", file);
  KVASIR_ASSERT_OK(command);
  LaunchOptions want;
  want.model = "from-file";
  want.tensor_parallel = 8;
  want.prefix_caching = false;
  want.max_model_len = 65536;
  want.kv_cache_dtype = "fp8";
  want.spec_method = "mtp";
  want.spec_tokens = 1;
  want.cudagraph_capture_sizes = {1, 2};
  EXPECT_EQ(command->options, want);
}

TEST(LaunchCommandTest, UnknownKeysAndVariablesAreListed) {
  const auto command = Parse(
      "VLLM_KV_CACHE_LAYOT=HND vllm serve m --speculative-config '{\"methd\": \"mtp\", \"revision\": \"r\"}' "
      "--frobnicate --zap=1");
  KVASIR_ASSERT_OK(command);
  EXPECT_THAT(command->unknown,
              ElementsAre(UnknownFlag{"VLLM_KV_CACHE_LAYOT=HND", "VLLM_KV_CACHE_LAYOUT"},
                          UnknownFlag{"--frobnicate", ""}, UnknownFlag{"--zap=1", ""},
                          UnknownFlag{"--speculative-config.methd mtp", "speculative-config.method"}));
  EXPECT_THAT(command->not_about_cache, ElementsAre("--speculative-config.revision r"));
}

struct ReplacedCase {
  std::string words;
  O options;
  std::string note;
};

// The engine moves what is said as section.key behind all else, where its parser lets the last value count.
TEST(LaunchCommandTest, PartsReplaceWholeValues) {
  const auto options = [](auto set) {
    O o;
    o.model = "m";
    set(o);
    return o;
  };
  const ReplacedCase cases[] = {
      {"--compilation-config.cudagraph_mode FULL --compilation-config '{\"cudagraph_capture_sizes\": [1]}'",
       options([](O& o) { o.cudagraph_mode = "FULL"; }), "said as --compilation-config.key"},
      {"--speculative-config '{\"num_speculative_tokens\": 4}' --speculative-config '{\"method\": \"mtp\"}'",
       options([](O& o) { o.spec_method = "mtp"; }), "--speculative-config is given twice; the last counts"},
      {"-sc.method mtp --speculative-config.num_speculative_tokens 3",
       options([](O& o) { o.spec_tokens = 3; }), "what is said as -sc.key does not count"},
  };
  for (const ReplacedCase& c : cases) {
    SCOPED_TRACE(c.words);
    const auto command = Parse("vllm serve m " + c.words);
    KVASIR_ASSERT_OK(command);
    EXPECT_EQ(command->options, c.options);
    EXPECT_THAT(command->notes, ElementsAre(HasSubstr(c.note)));
  }
}

// Thousands of unknown words are not compared with every name.
TEST(LaunchCommandTest, OnlyTheFirstUnknownFlagsGetASuggestion) {
  std::string text = "vllm serve m";
  for (int i = 0; i < 40; ++i) text += " --max-modle-len";
  const auto command = Parse(text);
  KVASIR_ASSERT_OK(command);
  ASSERT_EQ(command->unknown.size(), 40U);
  EXPECT_EQ(command->unknown[31].nearest, "max-model-len");
  EXPECT_EQ(command->unknown[32].nearest, "");
}

struct ErrorCase {
  std::string text;
  std::string reason;
  std::string field;
  std::string part;  // of the message
  std::string file = {};
};
void PrintTo(const ErrorCase& c, std::ostream* out) { *out << c.text; }

class LaunchErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(LaunchErrorTest, NamesFlagValueAndFix) {
  const auto command = Parse(GetParam().text, GetParam().file);
  ASSERT_FALSE(command.ok());
  const TypedError error = ErrorOf(command.status());
  EXPECT_EQ(error.reason, GetParam().reason);
  EXPECT_EQ(error.field, GetParam().field);
  EXPECT_THAT(error.message, HasSubstr(GetParam().part));
}

INSTANTIATE_TEST_SUITE_P(
    All, LaunchErrorTest,
    ::testing::Values(
        ErrorCase{"", reason::kUnknownValue, "command", "begin at"},
        ErrorCase{"docker run x", reason::kUnknownValue, "command", "starts \"docker\""},
        ErrorCase{"vllm bench", reason::kUnknownValue, "command", "starts no server"},
        ErrorCase{"python train.py", reason::kUnknownValue, "command", "python train.py"},
        ErrorCase{"vllm serve", reason::kMissingField, "model", "no model"},
        ErrorCase{"vllm serve a b", reason::kUnknownValue, "command", "\"b\" is neither"},
        ErrorCase{"vllm serve m -tp", reason::kMissingField, "-tp", "no value"},
        ErrorCase{"vllm serve m -tp eight", reason::kUnknownValue, "-tp", "whole number"},
        ErrorCase{"vllm serve m -tp 0", reason::kValueOutOfRange, "-tp", "from 1 to 1024"},
        ErrorCase{"vllm serve m --max-model-len 1.5K", reason::kUnknownValue, "--max-model-len", "fraction"},
        ErrorCase{"vllm serve m --max-model-len 99999999999999999999", reason::kUnknownValue,
                  "--max-model-len", "131,072"},
        ErrorCase{"vllm serve m --kv-cache-dtype fp7", reason::kUnknownValue, "--kv-cache-dtype",
                  "use one of auto"},
        ErrorCase{"vllm serve m --gpu-memory-utilization 1.5", reason::kValueOutOfRange,
                  "--gpu-memory-utilization", "from 0 to 1"},
        ErrorCase{"vllm serve m --gpu-memory-utilization nan", reason::kUnknownValue,
                  "--gpu-memory-utilization", "give a number"},
        ErrorCase{"vllm serve m --enable-prefix-caching=true", reason::kUnknownValue,
                  "--enable-prefix-caching", "takes no value"},
        ErrorCase{"vllm serve m --speculative-config '{method: x}'", reason::kMalformedMessage,
                  "--speculative-config", "single quotes"},
        ErrorCase{"vllm serve m --spec-method mtp -sc.method mtp", reason::kConflictingFields,
                  "--speculative-config.method", "keep one"},
        ErrorCase{"vllm serve m --hf-overrides 3", reason::kUnknownValue, "--hf-overrides", "JSON object"},
        ErrorCase{"vllm serve m --hf-overrides " + std::string(40, '[') + std::string(40, ']'),
                  reason::kMalformedMessage, "--hf-overrides", "nested deeper"},
        ErrorCase{"vllm serve 'm", reason::kMalformedMessage, "command", "not closed"},
        ErrorCase{"vllm serve m --spec-method mt\x8c", reason::kMalformedMessage, "command", "not UTF-8"},
        ErrorCase{"vllm serve m --config launch.yaml", reason::kMalformedMessage, "--config", "not UTF-8",
                  "model: mt\x8c\n"},
        ErrorCase{"vllm serve m --config other.yaml", reason::kUnknownValue, "--config", "no such file"},
        ErrorCase{"vllm serve m --config launch.yaml", reason::kMalformedMessage, "--config", "not a map",
                  "- a\n"},
        ErrorCase{"vllm serve m --config launch.yaml", reason::kMalformedMessage, "--config",
                  "not valid YAML", "a: [\n"},
        ErrorCase{"vllm serve m --config launch.yaml", reason::kMalformedMessage, "--config", "too deeply",
                  "a: &x [*x]\n"}));

TEST(LaunchCommandTest, AliasesCannotExplode) {
  std::string file = "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    file += absl::StrFormat("a%d: &a%d [%s, %s, %s]\n", i, i, before, before, before);
  }
  EXPECT_THAT(Parse("vllm serve m --config launch.yaml", file),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, "too many values"));
}

TEST(LaunchFlagsTest, NamesAreUnique) {
  std::vector<std::string> seen;
  const auto check = [&](const std::string& name) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), name), 0) << name;
    seen.push_back(name);
  };
  const auto check_row = [&](const FlagRow& row, std::string_view prefix) {
    check(std::string(prefix) + std::string(row.name));
    if (!row.alias.empty()) check("-" + std::string(row.alias));
  };
  for (const FlagRow& row : CacheFlags()) {
    check_row(row, "");
    if (!row.emitted.empty()) {
      const auto emitted = FindFlag(row.emitted);
      ASSERT_TRUE(emitted.has_value()) << row.name;
      EXPECT_TRUE(emitted->field == row.field) << row.name;
      EXPECT_TRUE(emitted->emitted.empty()) << row.name;
    }
  }
  ForEachOtherFlag(check_row);
  EXPECT_GT(seen.size(), 400U);
}

}  // namespace
}  // namespace kvasir
