// What each adapter refuses: the smallest change that breaks a small configuration, and the field that is
// named.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "common/models/config_error.h"
#include "common/models/read_config.h"
#include "tests/common/models/small_config.h"

namespace kvasir::testing {
namespace {

struct BadCase {
  std::string what;
  std::string config;
  ConfigFault fault;
  std::string field;
};
void PrintTo(const BadCase& c, std::ostream* out) { *out << c.what; }

using F = ConfigFault;

std::vector<BadCase> AttentionCases() {
  return {
      {"no heads", SmallConfig("LlamaForCausalLM", R"("num_attention_heads": null)"), F::kMissingField,
       "num_attention_heads"},
      {"window type", SmallConfig("LlamaForCausalLM", R"("sliding_window": "64")"), F::kWrongType,
       "sliding_window"},
      {"window without its size", SmallConfig("Gemma2ForCausalLM", ""), F::kMissingField, "sliding_window"},
      {"pattern of no letters",
       SmallConfig("Exaone4ForCausalLM", R"("sliding_window": 64, "sliding_window_pattern": "")"),
       F::kOutOfLimit, "sliding_window_pattern"},
      {"all layers share",
       SmallWrapped("Gemma3nForConditionalGeneration", R"("sliding_window": 64, "num_kv_shared_layers": 4)"),
       F::kOutOfLimit, "text_config.num_kv_shared_layers"},
      {"nothing to share",
       SmallWrapped("Gemma4ForConditionalGeneration",
                    R"("sliding_window": 64, "num_kv_shared_layers": 1, "layer_types": ["full_attention",
                       "full_attention", "full_attention", "sliding_attention"])"),
       F::kContradiction, "text_config.num_kv_shared_layers"},
      {"widths short",
       SmallWrapped("Gemma3nForConditionalGeneration", R"("sliding_window": 64, "intermediate_size": [8])"),
       F::kContradiction, "text_config.intermediate_size"},
      {"no_rope_layers short",
       SmallWrapped("Llama4ForConditionalGeneration",
                    R"("num_local_experts": 4, "num_experts_per_tok": 1, "no_rope_layers": [1])"),
       F::kContradiction, "text_config.no_rope_layers"},
      {"hybrid pattern short",
       SmallConfig("MiMoV2FlashForCausalLM", R"("hybrid_layer_pattern": [0], "sliding_window": 32)"),
       F::kContradiction, "hybrid_layer_pattern"},
      {"blocks short", SmallConfig("DeciLMForCausalLM", R"("block_configs": [])"), F::kContradiction,
       "block_configs"},
      {"block without attention",
       SmallConfig("DeciLMForCausalLM",
                   R"("num_hidden_layers": 1, "block_configs": [{"ffn": {"no_op": true}}])"),
       F::kMissingField, "block_configs[0].attention"},
      {"block is a number",
       SmallConfig("DeciLMForCausalLM", R"("num_hidden_layers": 1, "block_configs": [7])"), F::kWrongType,
       "block_configs[0]"},
      {"heads in a group", SmallConfig("DeciLMForCausalLM", R"("num_hidden_layers": 1, "block_configs": [
         {"attention": {"n_heads_in_group": 3}, "ffn": {"no_op": true}}])"),
       F::kContradiction, "block_configs[0].attention.n_heads_in_group"},
      {"sparse layers short",
       SmallConfig("MiniMaxM3ForCausalLM", R"("num_local_experts": 4, "num_experts_per_tok": 2,
         "sparse_attention_config": {"sparse_num_index_heads": 2, "sparse_index_dim": 8, "sparse_topk_blocks": 4,
           "sparse_block_size": 16, "sparse_attention_freq": [1]})"),
       F::kContradiction, "sparse_attention_config.sparse_attention_freq"},
      {"experts short", SmallConfig("Glm4MoeForCausalLM", R"("n_routed_experts": 8, "num_experts_per_tok": 2,
         "moe_intermediate_size": 16, "moe_layer_freq": [0, 1])"),
       F::kContradiction, "moe_layer_freq"},
      {"encoder heads",
       R"({"architectures": ["BartModel"], "d_model": 64, "vocab_size": 1000, "decoder_layers": 2,
           "decoder_attention_heads": 5, "decoder_ffn_dim": 256, "encoder_layers": 3,
           "encoder_attention_heads": 4, "encoder_ffn_dim": 256})",
       F::kContradiction, "decoder_attention_heads"},
  };
}

constexpr std::string_view kV4 =
    R"("n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
  "head_dim": 32, "qk_rope_head_dim": 8, "sliding_window": 16, "num_hidden_layers": 2)";

std::vector<BadCase> LatentAndRecurrentCases() {
  const std::string v4(kV4);
  return {
      {"ratios missing", SmallConfig("DeepseekV4ForCausalLM", v4), F::kMissingField, "compress_ratios"},
      {"ratios short", SmallConfig("DeepseekV4ForCausalLM", v4 + R"(, "compress_ratios": [0])"),
       F::kContradiction, "compress_ratios"},
      {"ratio unknown", SmallConfig("DeepseekV4ForCausalLM", v4 + R"(, "compress_ratios": [0, 16])"),
       F::kUnsupported, "compress_ratios[1]"},
      {"ratio 4 without an indexer",
       SmallConfig("DeepseekV4ForCausalLM", v4 + R"(, "compress_ratios": [0, 4])"), F::kMissingField,
       "index_n_heads"},
      {"rope as wide as the head",
       SmallConfig("DeepseekV4ForCausalLM", v4 + R"(, "compress_ratios": [0, 0], "qk_rope_head_dim": 32)"),
       F::kOutOfLimit, "qk_rope_head_dim"},
      {"linear type",
       SmallConfig("Qwen3NextForCausalLM", R"("linear_num_key_heads": 2, "linear_num_value_heads": 4,
         "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4,
         "layer_types": ["linear_attention", "x", "full_attention", "full_attention"])"),
       F::kUnsupported, "layer_types[1]"},
      {"value heads",
       SmallConfig("Qwen3NextForCausalLM", R"("linear_num_key_heads": 3, "linear_num_value_heads": 4,
         "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4)"),
       F::kContradiction, "layer 0 key_heads"},
      {"lightning list",
       SmallConfig("MiniMaxText01ForCausalLM", R"("attn_type_list": [1], "num_local_experts": 4,
         "num_experts_per_tok": 2)"),
       F::kContradiction, "attn_type_list"},
      {"inner width",
       SmallConfig("FalconH1ForCausalLM", R"("mamba_n_heads": 16, "mamba_d_head": 8, "mamba_d_state": 4,
         "mamba_d_ssm": 100)"),
       F::kContradiction, "mamba_n_heads"},
      {"zamba2 list", SmallConfig("Zamba2ForCausalLM", R"("n_mamba_heads": 16, "mamba_headdim": 8,
         "mamba_d_state": 4, "layers_block_type": ["mamba"])"),
       F::kContradiction, "layers_block_type"},
      {"granite without its list", SmallConfig("GraniteMoeHybridForCausalLM", ""), F::kMissingField,
       "layer_types"},
      {"granite type",
       SmallConfig("GraniteMoeHybridForCausalLM", R"("layer_types": ["attention", "x", "mamba", "mamba"])"),
       F::kUnsupported, "layer_types[1]"},
      {"lfm2 type", SmallConfig("Lfm2ForCausalLM", R"("layer_types": ["conv", "x", "conv", "conv"])"),
       F::kUnsupported, "layer_types[1]"},
      {"nemotron word", SmallConfig("NemotronHForCausalLM", R"("layers_block_type": ["mamba", "x"])"),
       F::kOutOfLimit, "layers_block_type"},
      {"state too large",
       SmallConfig("MambaForCausalLM", R"("intermediate_size": 1048576, "state_size": 1048576)"),
       F::kOutOfLimit, "layer 0 inner"},
  };
}

std::vector<BadCase> DraftAndWeightCases() {
  return {
      {"taps missing", SmallConfig("DFlashDraftModel", R"("dflash_config": {"mask_token_id": 1})"),
       F::kMissingField, "dflash_config.target_layer_ids"},
      {"taps empty",
       SmallConfig("DFlashDraftModel",
                   R"("num_target_layers": 8, "dflash_config": {"target_layer_ids": []})"),
       F::kOutOfLimit, "draft taps"},
      {"taps beyond",
       SmallConfig("DFlashDraftModel",
                   R"("num_target_layers": 8, "dflash_config": {"target_layer_ids": [8]})"),
       F::kContradiction, "draft taps"},
      {"mask", SmallConfig("DFlashDraftModel", R"("num_target_layers": 8,
         "dflash_config": {"target_layer_ids": [1], "mask_token_id": 1000})"),
       F::kOutOfLimit, "dflash_config.mask_token_id"},
      {"dflash_config is a list", SmallConfig("DFlashDraftModel", R"("dflash_config": [])"), F::kWrongType,
       "dflash_config"},
      {"markov head", SmallConfig("DSparkDraftModel", R"("num_target_layers": 8,
         "dflash_config": {"target_layer_ids": [1], "markov_rank": 8, "markov_head_type": "lstm"})"),
       F::kUnsupported, "dflash_config.markov_head_type"},
      {"draft in the target's checkpoint", SmallConfig("DSparkDraftModel", R"("model_type": "deepseek_v4")"),
       F::kUnsupported, "model_type"},
      {"quantisation is text", SmallConfig("LlamaForCausalLM", R"("quantization_config": "fp8")"),
       F::kWrongType, "quantization_config"},
      {"quantisation bits",
       SmallConfig("LlamaForCausalLM", R"("quantization_config": {"quant_method": "awq", "bits": 64})"),
       F::kOutOfLimit, "quantization_config.bits"},
      {"modules are numbers",
       SmallConfig("LlamaForCausalLM",
                   R"("quantization_config": {"quant_method": "fp8", "modules_to_not_convert": [1]})"),
       F::kWrongType, "quantization_config.modules_to_not_convert[0]"},
      {"prediction too deep", SmallConfig("Glm4MoeForCausalLM", R"("num_nextn_predict_layers": 33)"),
       F::kOutOfLimit, "num_nextn_predict_layers"},
  };
}

std::vector<BadCase> AllCases() {
  std::vector<BadCase> out;
  for (const auto& part : {AttentionCases(), LatentAndRecurrentCases(), DraftAndWeightCases()})
    out.insert(out.end(), part.begin(), part.end());
  return out;
}

class BadAdapterConfig : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadAdapterConfig, NamesFaultAndField) {
  const auto model = ReadConfigJson(GetParam().config, "org/bad");
  ASSERT_FALSE(model.ok());
  const auto error = ConfigErrorOf(model.status());
  ASSERT_TRUE(error.has_value()) << model.status();
  EXPECT_EQ(ConfigFaultName(error->fault), ConfigFaultName(GetParam().fault)) << model.status();
  EXPECT_EQ(error->field, GetParam().field) << model.status();
  EXPECT_FALSE(error->fix.empty());
}
INSTANTIATE_TEST_SUITE_P(All, BadAdapterConfig, ::testing::ValuesIn(AllCases()));

}  // namespace
}  // namespace kvasir::testing
