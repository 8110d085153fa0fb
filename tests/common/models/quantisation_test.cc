// The many forms of quantization_config, by what each class of weights comes to.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "common/models/read_config.h"
#include "common/models/weight_class.h"
#include "tests/common/models/small_config.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

std::string Text(const WeightFormat& f) {
  return std::to_string(f.bits) + "/" + std::to_string(f.group) + "/" + std::to_string(f.scale_bits);
}

// "method: mixers dense experts shared head".
std::string Text(const WeightQuantisation& q) {
  return q.method + ": " + Text(q.mixers) + " " + Text(q.dense) + " " + Text(q.experts) + " " +
         Text(q.shared) + " " + Text(q.head) + (q.cache_dtype.has_value() ? " cache" : "");
}

struct QuantCase {
  std::string what;
  std::string config;  // of quantization_config
  std::string expected;
};
void PrintTo(const QuantCase& c, std::ostream* out) { *out << c.what; }

std::vector<QuantCase> Cases() {
  return {
      {"fp8 blocks", R"({"quant_method": "fp8", "weight_block_size": [128, 128]})",
       "fp8: 8/16384/32 8/16384/32 8/16384/32 8/16384/32 0/0/0"},
      {"fp8 a tensor, attention left out",
       R"({"quant_method": "fp8", "weight_block_size": null, "modules_to_not_convert": ["model.layers.0.self_attn.q_proj",
           "model.layers.1.self_attn.q_proj", "model.layers.2.mlp.gate", "model.layers.0.input_layernorm"]})",
       "fp8: 0/0/0 8/0/0 8/0/0 8/0/0 0/0/0"},
      {"fp8, one layer's attention left out is not all",
       R"({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.self_attn.q_proj"]})",
       "fp8: 8/0/0 8/0/0 8/0/0 8/0/0 0/0/0"},
      {"compressed tensors, experts alone",
       R"({"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized",
           "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
                      "re:.*lm_head.*"],
           "config_groups": {"group_0": {"targets": ["Linear"],
                             "weights": {"num_bits": 4, "group_size": 32, "scale_dtype": "torch.uint8"}}}})",
       "compressed-tensors: 0/0/0 0/0/0 4/32/8 0/0/0 0/0/0"},
      {"compressed tensors, channels",
       R"({"quant_method": "compressed-tensors", "ignore": ["lm_head"], "kv_cache_scheme": {"num_bits": 8, "type": "float"},
           "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "group_size": null}}}})",
       "compressed-tensors: 8/0/0 8/0/0 8/0/0 8/0/0 0/0/0 cache"},
      {"compressed tensors, no groups", R"({"quant_method": "compressed-tensors"})",
       "compressed-tensors: 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0"},
      {"modelopt NVFP4",
       R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
           "exclude_modules": ["lm_head", "model.layers.*.self_attn*"]})",
       "modelopt: 0/0/0 4/16/8 4/16/8 4/16/8 0/0/0 cache"},
      {"modelopt, whole layers left out",
       R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "model.layers.0*",
           "model.layers.1.*"]})",
       "modelopt: 0/0/0 0/0/0 4/16/8 4/16/8 0/0/0"},
      {"modelopt mixed",
       R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
           "model.layers.0.self_attn.q_proj": {"quant_algo": "MXFP8"},
           "model.layers.1.mlp.experts": {"quant_algo": "NVFP4"},
           "model.layers.1.mlp.experts.2": {"quant_algo": "NVFP4"},
           "model.layers.2.mlp.experts": {"quant_algo": "FP8"},
           "model.layers.2.mlp.shared_expert.up_proj": {"quant_algo": "W4A16_NVFP4"}}})",
       "modelopt: 8/32/8 0/0/0 4/16/8 4/16/8 0/0/0"},
      {"mxfp4", R"({"quant_method": "mxfp4"})", "mxfp4: 0/0/0 0/0/0 4/32/8 0/0/0 0/0/0"},
      {"awq", R"({"quant_method": "awq", "bits": 4, "group_size": 128})",
       "awq: 4/128/20 4/128/20 4/128/20 4/128/20 0/0/0"},
      {"gptq of whole rows, with its head",
       R"({"quant_method": "gptq", "bits": 8, "group_size": -1, "lm_head": true})",
       "gptq: 8/0/0 8/0/0 8/0/0 8/0/0 8/0/0"},
      {"unknown", R"({"quant_method": "new thing"})", "new-thing: 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0"},
      {"unnamed", "{}", "unnamed: 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0"},
  };
}

class Quantisation : public ::testing::TestWithParam<QuantCase> {};

TEST_P(Quantisation, OfEachClass) {
  // Layers 0 and 1 are dense, 2 and 3 have experts; all have attention.
  const std::string fields = R"("n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
    "n_shared_experts": 1, "first_k_dense_replace": 2, "quantization_config": )";
  const auto model =
      ReadConfigJson(SmallConfig("Glm4MoeForCausalLM", fields + GetParam().config), "org/small");
  KVASIR_ASSERT_OK(model);
  EXPECT_EQ(Text(model->quantisation), GetParam().expected);
}
INSTANTIATE_TEST_SUITE_P(All, Quantisation, ::testing::ValuesIn(Cases()));

TEST(Quantisation, V4ExpertsHaveTheirOwnWidth) {
  const auto model =
      ReadConfigJson(SmallConfig("MixtralForCausalLM",
                                 R"("num_local_experts": 4, "num_experts_per_tok": 2, "expert_dtype": "fp4",
        "quantization_config": {"quant_method": "fp8"})"),
                     "org/small");
  KVASIR_ASSERT_OK(model);
  EXPECT_EQ(Text(model->quantisation.experts), "4/32/8");
}

struct ClassCase {
  std::string module;
  std::optional<WeightClass> expected;
};
void PrintTo(const ClassCase& c, std::ostream* out) { *out << c.module; }

class WeightClasses : public ::testing::TestWithParam<ClassCase> {};

TEST_P(WeightClasses, ByName) { EXPECT_EQ(WeightClassOf(GetParam().module), GetParam().expected); }
INSTANTIATE_TEST_SUITE_P(
    All, WeightClasses,
    ::testing::Values(ClassCase{"model.layers.3.self_attn.q_proj", WeightClass::kMixers},
                      ClassCase{"model.layers.3.linear_attn*", WeightClass::kMixers},
                      ClassCase{"backbone.layers.3.mixer.in_proj", WeightClass::kMixers},
                      ClassCase{"backbone.layers.3.mixer.up_proj", WeightClass::kDense},
                      ClassCase{"model.layers.3.mlp.down_proj", WeightClass::kDense},
                      ClassCase{"model.layers.3.mlp.experts.7.up_proj", WeightClass::kExperts},
                      ClassCase{"model.layers.3.mlp.shared_experts*", WeightClass::kShared},
                      ClassCase{"lm_head", WeightClass::kHead}, ClassCase{"head", WeightClass::kHead},
                      ClassCase{"model.layers.3.mlp.gate", std::nullopt},
                      ClassCase{"model.layers.3.mlp.shared_expert_gate", std::nullopt},
                      ClassCase{"model.layers.3.self_attn.kv_a_layernorm", std::nullopt},
                      ClassCase{"model.embed_tokens", std::nullopt},
                      ClassCase{"vision_tower.layers.3.mlp.fc1", std::nullopt},
                      ClassCase{"mtp.layers.0*", std::nullopt}, ClassCase{"", std::nullopt}));

}  // namespace
}  // namespace kvasir::testing
