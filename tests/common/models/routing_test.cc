// How experts are chosen, as configurations say it or leave it to the family's class.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "common/models/check_model.h"
#include "common/models/model_text.h"
#include "common/models/read_config.h"
#include "tests/common/models/model_configs.h"
#include "tests/common/models/small_config.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

constexpr std::string_view kMla = R"("q_lora_rank": null, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
  "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 16, "num_experts_per_tok": 2,
  "moe_intermediate_size": 16, "n_shared_experts": 1)";

std::string Deepseek(std::string_view architecture, std::string_view fields) {
  return SmallConfig(architecture, std::string(kMla) + std::string(fields));
}

std::string Kimi(std::string_view fields) {
  return With(kKimiConfig, R"("head_dim": 74,)",
              R"("head_dim": 74, "num_experts": 16, "num_experts_per_token": 2, "moe_intermediate_size": 16,
                 "num_shared_experts": 1, "first_k_dense_replace": 1)" +
                  std::string(fields) + ",");
}

struct RoutingCase {
  const char* what;
  std::string config;
  const char* routing;  // the fields after expert_intermediate in the last layer's canonical text
};
void PrintTo(const RoutingCase& c, std::ostream* out) { *out << c.what; }

std::vector<RoutingCase> Cases() {
  return {
      {"V3 says nothing", Deepseek("DeepseekV3ForCausalLM", ""),
       " scoring=sigmoid correction_bias=true groups=8 groups_kept=4 routed_scale=2.5"},
      {"V2 says nothing", Deepseek("DeepseekV2ForCausalLM", ""), " scoring=softmax normalise=false"},
      {"V2 with groups", Deepseek("DeepseekV2ForCausalLM", R"(, "scoring_func": "softmax", "n_group": 8,
         "topk_method": "group_limited_greedy", "topk_group": 3, "routed_scaling_factor": 16.0)"),
       " scoring=softmax groups=8 groups_kept=3 normalise=false routed_scale=16"},
      {"V2's greedy choice knows no groups",
       Deepseek("DeepseekV2ForCausalLM", R"(, "topk_method": "greedy", "n_group": 8, "topk_group": 3)"),
       " scoring=softmax normalise=false"},
      {"K2's one group", Deepseek("DeepseekV3ForCausalLM", R"(, "n_group": 1, "topk_group": 1,
         "routed_scaling_factor": 2.827, "norm_topk_prob": true)"),
       " scoring=sigmoid correction_bias=true routed_scale=2.827"},
      {"a scoring of later days",
       Deepseek("DeepseekV3ForCausalLM", R"(, "scoring_func": "sqrtsoftplus", "n_group": 4)"), ""},
      {"Kimi-Linear says nothing", Kimi(""), " scoring=sigmoid correction_bias=true"},
      {"Kimi-Linear", Kimi(R"(, "num_expert_group": 4, "topk_group": 2, "moe_renormalize": false,
         "routed_scaling_factor": 2.446)"),
       " scoring=sigmoid correction_bias=true groups=4 groups_kept=2 normalise=false routed_scale=2.446"},
      {"Kimi-K3",
       Kimi(R"(, "routed_expert_hidden_size": 24, "latent_moe_use_norm": true, "hidden_act": "situ",
         "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0)"),
       " latent=24 scoring=sigmoid correction_bias=true latent_norm=true situ_beta=4 situ_linear_beta=25"},
      {"SiTU without betas", Kimi(R"(, "hidden_act": "situ")"),
       " scoring=sigmoid correction_bias=true situ_beta=1"},
  };
}

class RoutingTest : public ::testing::TestWithParam<RoutingCase> {};
INSTANTIATE_TEST_SUITE_P(Configs, RoutingTest, ::testing::ValuesIn(Cases()));

TEST_P(RoutingTest, IsWrittenWhereItIsKnown) {
  const auto model = ReadConfigJson(GetParam().config, "org/small");
  KVASIR_ASSERT_OK(model);
  const std::string text = ModelToText(*model);
  const std::string last = text.substr(text.rfind("\nlayer "));
  const std::string head = "expert_intermediate=16";
  ASSERT_NE(last.find(head), std::string::npos) << last;
  const std::size_t begin = last.find(head) + head.size();
  EXPECT_EQ(last.substr(begin, last.find('\n', begin) - begin), GetParam().routing);
  const auto again = ModelFromText(text);
  KVASIR_ASSERT_OK(again);
  EXPECT_EQ(again->layers.back().mlp, model->layers.back().mlp);
}

TEST(RoutingTest, DenseLayersOfKimiHaveItsActivation) {
  const auto model =
      ReadConfigJson(Kimi(R"(, "hidden_act": "situ", "attn_res_block_size": 12)"), "org/small");
  KVASIR_ASSERT_OK(model);
  EXPECT_EQ(model->layers[0].mlp.experts, 0);
  EXPECT_EQ(model->layers[0].mlp.situ_beta, 1);
  EXPECT_EQ(model->residual_block, 12);
  EXPECT_THAT(ReadConfigJson(Kimi(R"(, "hidden_act": "gelu")"), "org/small"),
              StatusIs(absl::StatusCode::kInvalidArgument, "known: silu, situ"));
}

struct FaultCase {
  const char* what;
  void (*change)(MlpShape&);
  const char* field;
};
void PrintTo(const FaultCase& c, std::ostream* out) { *out << c.what; }

class RoutingFaultTest : public ::testing::TestWithParam<FaultCase> {};
INSTANTIATE_TEST_SUITE_P(
    Fields, RoutingFaultTest,
    ::testing::Values(
        FaultCase{"no scoring", [](MlpShape& m) { m.scoring = ExpertScoring::kUnstated; }, "scoring"},
        FaultCase{"uneven groups", [](MlpShape& m) { m.groups = 3; }, "groups"},
        FaultCase{"no group", [](MlpShape& m) { m.groups = 0; }, "groups"},
        FaultCase{"more kept than there are", [](MlpShape& m) { m.groups_kept = 5; }, "groups_kept"},
        FaultCase{"groups of one have no two best", [](MlpShape& m) { m.groups = 16, m.groups_kept = 16; },
                  "groups"},
        FaultCase{"more chosen than kept", [](MlpShape& m) { m.experts_per_token = 9; }, "experts_per_token"},
        FaultCase{"no weight", [](MlpShape& m) { m.routed_scale = 0; }, "routed_scale"},
        FaultCase{"a dense layer routes",
                  [](MlpShape& m) {
                    m = {.intermediate = 8};
                    m.groups = 2;
                  },
                  "experts"}),
    [](const auto& its) {
      std::string name(its.param.what);
      for (char& c : name) c = c == ' ' ? '_' : c;
      return name;
    });

TEST_P(RoutingFaultTest, IsNamed) {
  auto model =
      ReadConfigJson(Deepseek("DeepseekV3ForCausalLM", R"(, "n_group": 4, "topk_group": 2)"), "org/small");
  KVASIR_ASSERT_OK(model);
  EXPECT_FALSE(FindModelFault(*model).has_value());
  GetParam().change(model->layers[2].mlp);
  const auto fault = FindModelFault(*model);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->field, std::string("layer 2 ") + GetParam().field);
}

}  // namespace
}  // namespace kvasir::testing
