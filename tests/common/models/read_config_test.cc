#include "common/models/read_config.h"

#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <variant>

#include "common/base/limits.h"
#include "common/models/adapters.h"
#include "common/models/config_error.h"
#include "tests/common/models/model_configs.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::kDeepseekConfig;
using testing::kDsparkConfig;
using testing::kKimiConfig;
using testing::kNemotronConfig;
using testing::kQwenConfig;
using testing::StatusIs;
using testing::With;

TEST(ReadConfig, DeepseekLayersRopeAndExperts) {
  const auto model = ReadConfigJson(kDeepseekConfig, "org/tiny");
  KVASIR_ASSERT_OK(model);
  EXPECT_EQ(model->name, "org/tiny");
  EXPECT_EQ(model->hidden, 64);
  EXPECT_EQ(model->context, 2048);
  ASSERT_EQ(model->layers.size(), 4U);
  const auto& mla = std::get<MlaShape>(model->layers[0].mixer);
  EXPECT_EQ(mla.q_lora_rank, 0);
  EXPECT_EQ(mla.kv_lora_rank + mla.rope_dim, 40);
  EXPECT_TRUE(mla.rotate);
  // Layer 0 is dense by first_k_dense_replace, layers 1 and 3 by moe_layer_freq.
  EXPECT_EQ(model->layers[0].mlp.intermediate, 128);
  EXPECT_EQ(model->layers[1].mlp.intermediate, 128);
  EXPECT_EQ(model->layers[2].mlp.experts, 8);
  EXPECT_EQ(model->layers[2].mlp.intermediate, 0);
  EXPECT_EQ(model->layers[3].mlp.intermediate, 128);
  EXPECT_EQ(model->rope.factor, 4.0);
  EXPECT_EQ(model->rope.mscale, 0.707);
  EXPECT_EQ(model->rope.mscale_all_dim, 0.0);
  EXPECT_FALSE(model->draft.has_value());
}

TEST(ReadConfig, KimiCountsLayersFromOneInsideTheWrapper) {
  const auto model = ReadConfigJson(kKimiConfig, "org/tiny");
  KVASIR_ASSERT_OK(model);
  EXPECT_EQ(model->architecture, "KimiK3ForConditionalGeneration");
  ASSERT_EQ(model->layers.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<KdaShape>(model->layers[0].mixer));
  EXPECT_TRUE(std::holds_alternative<KdaShape>(model->layers[1].mixer));
  const auto& mla = std::get<MlaShape>(model->layers[2].mixer);
  EXPECT_FALSE(mla.rotate);
  EXPECT_TRUE(mla.output_gate);
  EXPECT_EQ(model->context, 2048);
}

TEST(ReadConfig, DsparkReadsBothRopeForms) {
  const auto newer = ReadConfigJson(kDsparkConfig, "org/draft");
  KVASIR_ASSERT_OK(newer);
  EXPECT_EQ(newer->rope.factor, 4.0);
  EXPECT_EQ(newer->rope.theta, 50000.0);
  const std::string older_text =
      With(kDsparkConfig, R"("rope_parameters": {"rope_type": "yarn", "rope_theta": 50000.0,)",
           R"("rope_scaling": {"type": "yarn",)");
  const auto older = ReadConfigJson(older_text, "org/draft");
  KVASIR_ASSERT_OK(older);
  EXPECT_EQ(*older, *newer);
  ASSERT_TRUE(newer->draft.has_value());
  EXPECT_FALSE(newer->draft->causal);
  EXPECT_EQ(newer->draft->target_taps, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(newer->draft->target_layers, 3);
}

TEST(ReadConfig, DsparkCausalityIsReadNotGuessed) {
  const auto causal = ReadConfigJson(
      With(kDsparkConfig, R"("markov_rank": 8)", R"("dflash_config": {"causal": true}, "markov_rank": 8)"),
      "org/draft");
  KVASIR_ASSERT_OK(causal);
  EXPECT_TRUE(causal->draft->causal);
  const auto fallback = ReadConfigJson(
      With(kDsparkConfig, R"("markov_rank": 8)", R"("full_attention_causal": true, "markov_rank": 8)"),
      "org/draft");
  KVASIR_ASSERT_OK(fallback);
  EXPECT_TRUE(fallback->draft->causal);
}

std::string Windows(const ModelDescription& model) {
  std::string out;
  for (const ModelLayer& layer : model.layers) {
    out += std::to_string(std::get<AttentionShape>(layer.mixer).window) + " ";
  }
  return out;
}

TEST(ReadConfig, SlidingWindows) {
  struct Case {
    std::string config;
    std::string windows;
  };
  const std::string on = With(kQwenConfig, R"("use_sliding_window": false)", R"("use_sliding_window": true)");
  const std::string no_switch = With(kQwenConfig, R"("use_sliding_window": false, )", "");
  const std::string llama = With(no_switch, "Qwen3ForCausalLM", "LlamaForCausalLM");
  const std::string typed =
      With(kQwenConfig, R"("use_sliding_window")",
           R"("layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                                    "full_attention"], "use_sliding_window")");
  for (const Case& c :
       {Case{std::string(kQwenConfig), "0 0 0 0 "}, Case{on, "0 0 512 512 "}, Case{no_switch, "0 0 0 0 "},
        Case{llama, "512 512 512 512 "}, Case{typed, "512 0 512 0 "}}) {
    const auto model = ReadConfigJson(c.config, "org/tiny");
    KVASIR_ASSERT_OK(model);
    EXPECT_EQ(Windows(*model), c.windows) << c.config;
  }
}

TEST(ReadConfig, NemotronHasALayerForEachBlock) {
  const auto model = ReadConfigJson(kNemotronConfig, "org/tiny");
  KVASIR_ASSERT_OK(model);
  ASSERT_EQ(model->layers.size(), 7U);  // M - M * - M E
  EXPECT_EQ(model->layers[0].mlp, MlpShape{});
  EXPECT_EQ(std::get<Mamba2Shape>(model->layers[0].mixer).state_dtype, DType::kF32);
  EXPECT_TRUE(std::holds_alternative<NoMixer>(model->layers[1].mixer));
  EXPECT_EQ(model->layers[1].mlp.intermediate, 128);
  EXPECT_FALSE(model->layers[1].mlp.gated);
  EXPECT_TRUE(std::holds_alternative<AttentionShape>(model->layers[3].mixer));
  EXPECT_EQ(model->layers[6].mlp.experts, 8);
}

struct BadCase {
  std::string what;
  std::string config;
  ConfigFault fault;
  std::string field;
};
void PrintTo(const BadCase& c, std::ostream* out) { *out << c.what; }

class BadConfig : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadConfig, NamesFaultAndField) {
  const auto model = ReadConfigJson(GetParam().config, "org/bad");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  const auto error = ConfigErrorOf(model.status());
  ASSERT_TRUE(error.has_value()) << model.status();
  EXPECT_EQ(ConfigFaultName(error->fault), ConfigFaultName(GetParam().fault)) << model.status();
  EXPECT_EQ(error->field, GetParam().field) << model.status();
  EXPECT_FALSE(error->fix.empty());
  EXPECT_NE(std::string(model.status().message()).find("org/bad"), std::string::npos);
}

std::vector<BadCase> BadCases() {
  using F = ConfigFault;
  const auto ds = [](std::string_view from, std::string_view to) { return With(kDeepseekConfig, from, to); };
  const auto k3 = [](std::string_view from, std::string_view to) { return With(kKimiConfig, from, to); };
  const auto dr = [](std::string_view from, std::string_view to) { return With(kDsparkConfig, from, to); };
  const auto qw = [](std::string_view from, std::string_view to) { return With(kQwenConfig, from, to); };
  const auto nh = [](std::string_view from, std::string_view to) { return With(kNemotronConfig, from, to); };
  const std::string linear = "text_config.linear_attn_config.";
  return {
      {"empty", "", F::kNotJson, ""},
      {"truncated", R"({"architectures": [)", F::kNotJson, ""},
      {"infinity", ds("10000", "Infinity"), F::kOutOfLimit, "rope_theta"},
      {"minus infinity", ds("10000", "-Infinity"), F::kOutOfLimit, "rope_theta"},
      {"not a number", ds("\"vocab_size\": 1000", "\"vocab_size\": NaN"), F::kMissingField, "vocab_size"},
      {"array", "[1]", F::kNotJson, ""},
      {"deep", std::string(100000, '['), F::kNotJson, ""},
      {"huge", std::string(std::size_t{5} << 20, ' '), F::kNotJson, ""},
      {"no architectures", "{}", F::kMissingField, "architectures"},
      {"architectures text", R"({"architectures": "LlamaForCausalLM"})", F::kWrongType, "architectures"},
      {"architectures number", R"({"architectures": [7]})", F::kWrongType, "architectures[0]"},
      {"architectures empty", R"({"architectures": []})", F::kUnknownArchitecture, "architectures"},
      {"unknown", R"({"architectures": ["PerceiverModel"]})", F::kUnknownArchitecture, "architectures"},
      {"missing", ds(R"("kv_lora_rank": 32,)", ""), F::kMissingField, "kv_lora_rank"},
      {"null", ds(R"("kv_lora_rank": 32)", R"("kv_lora_rank": null)"), F::kMissingField, "kv_lora_rank"},
      {"text for int", ds(R"("vocab_size": 1000)", R"("vocab_size": "1000")"), F::kWrongType, "vocab_size"},
      {"real for int", ds(R"("vocab_size": 1000)", R"("vocab_size": 1000.0)"), F::kWrongType, "vocab_size"},
      {"negative", ds(R"("vocab_size": 1000)", R"("vocab_size": -1)"), F::kOutOfLimit, "vocab_size"},
      {"zero layers", ds(R"("num_hidden_layers": 4)", R"("num_hidden_layers": 0)"), F::kOutOfLimit,
       "num_hidden_layers"},
      {"too many layers", ds(R"("num_hidden_layers": 4)", R"("num_hidden_layers": 1025)"), F::kOutOfLimit,
       "num_hidden_layers"},
      {"beyond int64", ds(R"("hidden_size": 64)", R"("hidden_size": 18446744073709551615)"), F::kOutOfLimit,
       "hidden_size"},
      {"beyond uint64", ds(R"("hidden_size": 64)", R"("hidden_size": 118446744073709551615)"), F::kWrongType,
       "hidden_size"},
      {"dtype", ds("bfloat16", "int4"), F::kOutOfLimit, "torch_dtype"},
      {"two dtypes", ds(R"("torch_dtype")", R"("dtype": "float16", "torch_dtype")"), F::kContradiction,
       "torch_dtype"},
      {"eps", ds("1e-06", "-1.0"), F::kOutOfLimit, "rms_norm_eps"},
      {"eps type", ds("1e-06", "true"), F::kWrongType, "rms_norm_eps"},
      {"experts per token", ds(R"("num_experts_per_tok": 2)", R"("num_experts_per_tok": 9)"), F::kOutOfLimit,
       "num_experts_per_tok"},
      {"rope type", ds("yarn", "spiral"), F::kUnsupported, "rope_scaling.type"},
      {"llama3 factors", ds("yarn", "llama3"), F::kMissingField, "rope_scaling.low_freq_factor"},
      {"rope factor", ds(R"("factor": 4,)", ""), F::kMissingField, "rope_scaling.factor"},
      {"rope scaling list",
       ds(R"({"type": "yarn", "factor": 4, "original_max_position_embeddings": 512, "mscale": 0.707})",
          "[1]"),
       F::kWrongType, "rope_scaling"},
      {"odd rope", ds(R"("qk_rope_head_dim": 8)", R"("qk_rope_head_dim": 7)"), F::kContradiction,
       "layer 0 rope_dim"},
      {"indexer", ds(R"("kv_lora_rank")", R"("index_topk": 2048, "kv_lora_rank")"), F::kMissingField,
       "index_n_heads"},
      {"no text_config", k3("text_config", "other_config"), F::kMissingField, "text_config"},
      {"text_config list", R"({"architectures": ["KimiK3ForConditionalGeneration"], "text_config": []})",
       F::kWrongType, "text_config"},
      {"no linear", k3("linear_attn_config", "linear"), F::kMissingField, "text_config.linear_attn_config"},
      {"zero-based", k3("[1, 2]", "[0, 1]"), F::kOutOfLimit, linear + "kda_layers[0]"},
      {"beyond layers", k3("[3]", "[4]"), F::kOutOfLimit, linear + "full_attn_layers[0]"},
      {"in both", k3("[3]", "[2, 3]"), F::kContradiction, linear + "full_attn_layers"},
      {"twice", k3("[1, 2]", "[1, 1, 2]"), F::kContradiction, linear + "kda_layers"},
      {"in neither", k3("[1, 2]", "[1]"), F::kContradiction, linear + "kda_layers"},
      {"conv", k3(R"("short_conv_kernel_size": 4)", R"("short_conv_kernel_size": 1)"), F::kOutOfLimit,
       linear + "short_conv_kernel_size"},
      {"gate type", k3(R"("mla_use_output_gate": true)", R"("mla_use_output_gate": 1)"), F::kWrongType,
       "text_config.mla_use_output_gate"},
      {"state too large", k3(R"("head_dim": 16, "short)", R"("head_dim": 1048576, "short)"), F::kOutOfLimit,
       "layer 0 head_dim"},
      {"tap beyond", dr("[0, 2]", "[0, 3]"), F::kOutOfLimit, "target_layer_ids[1]"},
      {"taps descending", dr("[0, 2]", "[2, 0]"), F::kContradiction, "draft taps"},
      {"taps counted", dr("[0, 2]", "[2]"), F::kContradiction, "num_target_layers"},
      {"mask", dr("999", "1000"), F::kOutOfLimit, "mask_token_id"},
      {"markov kind", dr("vanilla", "lstm"), F::kUnsupported, "markov_head_type"},
      {"draft vocab", dr(R"("draft_vocab_size": 1000)", R"("draft_vocab_size": 500)"), F::kUnsupported,
       "draft_vocab_size"},
      {"two thetas", dr(R"("rope_theta": 50000.0,)", R"("rope_theta": 10000.0,)"), F::kContradiction,
       "rope_theta"},
      {"two ropes", dr(R"("rope_parameters")", R"("rope_scaling": {"type": "default"}, "rope_parameters")"),
       F::kContradiction, "rope_scaling"},
      {"kv heads", qw(R"("num_key_value_heads": 2)", R"("num_key_value_heads": 3)"), F::kContradiction,
       "num_key_value_heads"},
      {"layer types short", qw(R"("use_sliding_window")", R"("layer_types": [], "use_sliding_window")"),
       F::kContradiction, "layer_types"},
      {"layer type unknown",
       qw(R"("use_sliding_window")",
          R"("layer_types": ["full_attention", "mamba", "x", "y"], "use_sliding_window")"),
       F::kUnsupported, "layer_types[1]"},
      {"odd hidden", qw(R"("head_dim": 16,)", R"("hidden_size": 63,)"), F::kContradiction,
       "num_attention_heads"},
      {"block unknown", nh("M-M*-ME", "M-M*-MX"), F::kOutOfLimit, "hybrid_override_pattern"},
      {"pattern length", nh(R"("num_hidden_layers": 7)", R"("num_hidden_layers": 8)"), F::kContradiction,
       "num_hidden_layers"},
      {"pattern empty", nh(R"("M-M*-ME", "num_hidden_layers": 7)", R"("")"), F::kOutOfLimit,
       "hybrid_override_pattern"},
      {"groups", nh(R"("n_groups": 2)", R"("n_groups": 3)"), F::kContradiction, "n_groups"},
      {"state dtype", nh(R"("conv_kernel")", R"("mamba_ssm_cache_dtype": "fp8", "conv_kernel")"),
       F::kOutOfLimit, "mamba_ssm_cache_dtype"},
  };
}
INSTANTIATE_TEST_SUITE_P(All, BadConfig, ::testing::ValuesIn(BadCases()));

TEST(ReadConfig, UnknownArchitectureNamesTheNearest) {
  const auto model = ReadConfigJson(R"({"architectures": ["Qwen3ForCausaLM"]})", "org/bad");
  EXPECT_THAT(model, StatusIs(absl::StatusCode::kInvalidArgument, "Qwen3ForCausalLM"));
}

TEST(ReadConfig, AdaptersStandInOrderAndOnce) {
  std::string_view previous;
  for (const Adapter& adapter : Adapters()) {
    EXPECT_LT(previous, adapter.architecture);
    previous = adapter.architecture;
  }
}

// A wrapper that nobody knows is read by what it wraps.
TEST(ReadConfig, UnknownWrapperOfAKnownModel) {
  const std::string inner(kQwenConfig);
  const auto model =
      ReadConfigJson(R"({"architectures": ["NewVisionModel"], "llm_config": )" + inner + "}", "org/wrapped");
  KVASIR_ASSERT_OK(model);
  EXPECT_EQ(model->architecture, "NewVisionModel");
  EXPECT_TRUE(model->multimodal);
  EXPECT_EQ(model->layers.size(), 4U);
}

TEST(ReadConfig, NameIsChecked) {
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a\nb"), std::string(257, 'a')}) {
    const auto error = ConfigErrorOf(ReadConfigJson(kQwenConfig, name).status());
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->field, "name");
  }
}

TEST(ReadConfig, PathsAndNames) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(::testing::TempDir()) / "kvasir read config";
  fs::create_directories(root / "My Model");
  std::ofstream(root / "My Model" / "config.json") << kQwenConfig;
  std::ofstream(root / "other.json") << kQwenConfig;
  const auto from_folder = ReadConfigPath((root / "My Model" / "").string());
  KVASIR_ASSERT_OK(from_folder);
  EXPECT_EQ(from_folder->name, "My-Model");
  const auto from_config = ReadConfigPath((root / "My Model" / "config.json").string());
  KVASIR_ASSERT_OK(from_config);
  EXPECT_EQ(*from_config, *from_folder);
  const auto from_file = ReadConfigPath((root / "other.json").string());
  KVASIR_ASSERT_OK(from_file);
  EXPECT_EQ(from_file->name, "other");
  EXPECT_THAT(ReadConfigPath((root / "absent").string()), StatusIs(absl::StatusCode::kNotFound, "absent"));
  EXPECT_THAT(ReadConfigPath(root.string()), StatusIs(absl::StatusCode::kNotFound, "config.json"));
  fs::remove_all(root);
}

}  // namespace
}  // namespace kvasir
