// One small configuration for each way in which a family spells its layers.
#include "common/models/adapters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/models/draft_of.h"
#include "common/models/model_text.h"
#include "common/models/read_config.h"
#include "tests/common/models/layer_words.h"
#include "tests/common/models/model_configs.h"
#include "tests/common/models/small_config.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

struct AdapterCase {
  std::string what;
  std::string config;
  std::string kinds;
  std::string heads = "2x8";
  std::int64_t window = 0;
  std::string states = "";
};
void PrintTo(const AdapterCase& c, std::ostream* out) { *out << c.what; }

constexpr std::string_view kMlaFields = R"("q_lora_rank": null, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
  "qk_rope_head_dim": 8, "v_head_dim": 16)";
constexpr std::string_view kMambaFields = R"("mamba_n_heads": 16, "mamba_d_head": 8, "mamba_d_state": 4,
  "mamba_d_conv": 4, "mamba_n_groups": 1)";
constexpr std::string_view kExperts = R"("n_routed_experts": 8, "num_experts_per_tok": 2,
  "moe_intermediate_size": 16, "n_shared_experts": 1, "n_group": 2, "topk_group": 1)";
constexpr std::string_view kDeltaFields = R"("linear_num_key_heads": 2, "linear_num_value_heads": 4,
  "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4)";

std::string Join(std::string_view a, std::string_view b) { return std::string(a) + ", " + std::string(b); }

std::vector<AdapterCase> DenseCases() {
  return {
      {"llama", SmallConfig("LlamaForCausalLM", ""), "4 full"},
      {"mistral with a window", SmallConfig("MistralForCausalLM", R"("sliding_window": 256)"), "4 sliding",
       "2x8", 256},
      {"window 0 is none", SmallConfig("Phi3ForCausalLM", R"("sliding_window": 0)"), "4 full"},
      {"heads without kv heads", SmallConfig("LlamaForCausalLM", R"("num_key_value_heads": null)"), "4 full",
       "8x8"},
      {"qwen3 without its switch", SmallConfig("Qwen3ForCausalLM", R"("sliding_window": 256)"), "4 full"},
      {"qwen2 from layer 2 on",
       SmallConfig("Qwen2ForCausalLM",
                   R"("use_sliding_window": true, "sliding_window": 256, "max_window_layers": 2)"),
       "2 full, 2 sliding", "2x8", 256},
      {"qwen2.5-vl, flat", SmallConfig("Qwen2_5_VLForConditionalGeneration", ""), "4 full"},
      {"qwen2.5-vl, wrapped", SmallWrapped("Qwen2_5_VLForConditionalGeneration", ""), "4 full"},
      {"gemma2", SmallConfig("Gemma2ForCausalLM", R"("sliding_window": 64)"), "2 full, 2 sliding", "2x256",
       64},
      {"gemma3 by its pattern",
       SmallWrapped("Gemma3ForConditionalGeneration", R"("sliding_window": 64, "sliding_window_pattern": 4)"),
       "1 full, 3 sliding", "2x256", 64},
      {"command r", SmallConfig("CohereForCausalLM", ""), "4 full"},
      {"command a", SmallConfig("Cohere2ForCausalLM", R"("sliding_window": 64)"), "1 full, 3 sliding", "2x8",
       64},
      {"exaone by letters",
       SmallConfig("Exaone4ForCausalLM", R"("sliding_window": 64, "sliding_window_pattern": "LG")"),
       "2 full, 2 sliding", "2x8", 64},
      {"exaone without a window", SmallConfig("Exaone4ForCausalLM", R"("sliding_window": null)"), "4 full"},
      {"olmo3 by default", SmallConfig("Olmo3ForCausalLM", R"("sliding_window": 64)"), "1 full, 3 sliding",
       "2x8", 64},
      {"bert", SmallConfig("BertModel", ""), "4 encoder", ""},
      {"mpt",
       R"({"architectures": ["MPTForCausalLM"], "d_model": 64, "vocab_size": 1000, "max_seq_len": 512,
           "n_heads": 8, "n_layers": 2, "attn_config": {"kv_n_heads": 2}})",
       "2 full"},
      {"mpt, every head its own",
       R"({"architectures": ["MptForCausalLM"], "d_model": 64, "vocab_size": 1000, "n_heads": 8, "n_layers": 2})",
       "2 full", "8x8"},
      {"dbrx",
       R"({"architectures": ["DbrxForCausalLM"], "d_model": 64, "vocab_size": 1000, "max_seq_len": 512,
           "n_heads": 8, "n_layers": 2, "attn_config": {"kv_n_heads": 2, "rope_theta": 500000},
           "ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 16, "moe_top_k": 4}})",
       "2 full"},
      {"falcon with one kv head",
       R"({"architectures": ["FalconForCausalLM"], "hidden_size": 71, "num_attention_heads": 71, "multi_query": true,
           "new_decoder_architecture": false, "num_hidden_layers": 2, "vocab_size": 1000})",
       "2 full", "1x1"},
      {"falcon's newer decoder",
       SmallConfig("FalconForCausalLM", R"("new_decoder_architecture": true, "multi_query": true,
         "num_key_value_heads": null, "num_kv_heads": 4)"),
       "4 full", "4x8"},
      {"falcon by its oldest names",
       R"({"architectures": ["RWForCausalLM"], "hidden_size": 64, "n_head": 8, "n_layer": 2, "n_head_kv": 2,
           "multi_query": false, "alibi": true, "vocab_size": 1000})",
       "2 full"},
      {"minicpm3 caches every head",
       SmallConfig("MiniCPM3ForCausalLM", Join(kMlaFields, R"("num_key_value_heads": 8)")), "4 full", "8x24"},
  };
}

std::vector<AdapterCase> AttentionCases() {
  return {
      {"gemma3n shares caches",
       SmallWrapped("Gemma3nForConditionalGeneration",
                    R"("sliding_window": 64, "num_hidden_layers": 10, "num_kv_shared_layers": 4,
                       "intermediate_size": [8, 8, 8, 8, 8, 8, 8, 8, 8, 8])"),
       "2 full, 8 sliding", "2x256", 64},
      {"gemma4 has two geometries",
       SmallWrapped(
           "Gemma4ForConditionalGeneration",
           R"("head_dim": 8, "global_head_dim": 16, "num_global_key_value_heads": 1, "sliding_window": 64,
                       "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                                       "full_attention"])"),
       "2 full, 2 sliding", "2x8", 64},
      {"gpt-oss by index",
       SmallConfig("GptOssForCausalLM",
                   R"("sliding_window": 64, "num_local_experts": 4, "num_experts_per_tok": 2)"),
       "2 full, 2 sliding", "2x8", 64},
      {"llama4 in chunks",
       SmallWrapped("Llama4ForConditionalGeneration",
                    R"("num_local_experts": 4, "num_experts_per_tok": 1, "attention_chunk_size": 512)"),
       "1 full, 3 chunked", "2x8", 512},
      {"llama4 by no_rope_layers",
       SmallWrapped("Llama4ForConditionalGeneration",
                    R"("num_local_experts": 4, "num_experts_per_tok": 1, "no_rope_layers": [0, 1, 0, 1])"),
       "2 full, 2 chunked", "2x8", 8192},
      {"mimo-v2",
       SmallConfig("MiMoV2FlashForCausalLM",
                   R"("hybrid_layer_pattern": [0, 1, 1, 0], "sliding_window_size": 32,
         "head_dim": 12, "v_head_dim": 8, "swa_num_key_value_heads": 4)"),
       "2 full, 2 sliding", "2x12", 32},
      {"step", SmallConfig("Step3p5ForCausalLM", R"("sliding_window": 32, "layer_types":
         ["full_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"])"),
       "2 full, 2 sliding", "2x8", 32},
      {"nemotron-nas",
       SmallConfig("DeciLMForCausalLM",
                   R"("num_hidden_layers": 3, "num_key_value_heads": null, "block_configs": [
         {"attention": {"n_heads_in_group": 4, "no_op": false}, "ffn": {"ffn_mult": 3.0}},
         {"attention": {"no_op": true}, "ffn": {"no_op": true}},
         {"attention": {"replace_with_linear": true}, "ffn": {"replace_with_linear": true}}])"),
       "1 full, 2 none"},
      {"mixtral", SmallConfig("MixtralForCausalLM", R"("num_local_experts": 4, "num_experts_per_tok": 2)"),
       "4 full"},
      {"qwen3 moe",
       SmallConfig("Qwen3MoeForCausalLM",
                   R"("num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16)"),
       "4 full"},
      {"glm-4.5", SmallConfig("Glm4MoeForCausalLM", kExperts), "4 full"},
      {"ernie",
       SmallConfig("Ernie4_5_MoeForCausalLM",
                   R"("moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 16)"),
       "4 full"},
      {"minimax-m3", SmallConfig("MiniMaxM3ForCausalLM", R"("num_local_experts": 4, "num_experts_per_tok": 2,
         "moe_layer_freq": [0, 1, 1, 1], "dense_intermediate_size": 256,
         "sparse_attention_config": {"sparse_num_index_heads": 2, "sparse_index_dim": 8, "sparse_topk_blocks": 4,
           "sparse_block_size": 16, "sparse_attention_freq": [0, 1, 1, 1]})"),
       "4 full, 3 indexer"},
      {"bart",
       R"({"architectures": ["BartModel"], "d_model": 64, "vocab_size": 1000, "max_position_embeddings": 128,
           "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 256, "encoder_layers": 3,
           "encoder_attention_heads": 4, "encoder_ffn_dim": 256})",
       "2 full, 2 cross", "4x16"},
      {"whisper",
       R"({"architectures": ["WhisperForConditionalGeneration"], "d_model": 64, "vocab_size": 1000,
           "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 256, "encoder_layers": 3,
           "encoder_attention_heads": 4, "encoder_ffn_dim": 256})",
       "2 full, 2 cross", "4x16"},
  };
}

std::vector<AdapterCase> LatentCases() {
  return {
      {"deepseek-v3", SmallConfig("DeepseekV3ForCausalLM", kMlaFields), "4 MLA", "1x40"},
      {"deepseek-v3.2",
       SmallConfig("DeepseekV32ForCausalLM",
                   Join(kMlaFields, R"("index_topk": 8, "index_n_heads": 2, "index_head_dim": 16)")),
       "4 MLA, 4 indexer", "1x40"},
      {"glm-5.2 skips indexers",
       SmallConfig("GlmMoeDsaForCausalLM",
                   Join(kMlaFields, R"("num_hidden_layers": 12, "index_topk": 8, "index_n_heads": 2,
                          "index_head_dim": 16, "index_topk_freq": 4, "index_skip_topk_offset": 3)")),
       "12 MLA, 5 indexer", "1x40"},
      {"indexers by letters",
       SmallConfig("GlmMoeDsaForCausalLM",
                   Join(kMlaFields, R"("index_topk": 8, "index_n_heads": 2, "index_head_dim": 16,
                          "index_topk_pattern": "FSSF")")),
       "4 MLA, 2 indexer", "1x40"},
      {"deepseek-v4",
       SmallConfig("DeepseekV4ForCausalLM",
                   Join(kExperts, R"("head_dim": 32, "qk_rope_head_dim": 8, "sliding_window": 16,
                          "compress_ratios": [0, 4, 128, 1, 0], "index_topk": 8, "index_n_heads": 2,
                          "index_head_dim": 16, "o_lora_rank": 16, "o_groups": 2, "num_nextn_predict_layers": 1)")),
       "4 swa-MLA, 1 C4-MLA, 1 C128-MLA, 1 indexer", "1x32", 16},
      {"longcat has two mixers a layer",
       SmallConfig(
           "LongcatFlashForCausalLM",
           R"("num_layers": 3, "ffn_hidden_size": 128, "expert_ffn_hidden_size": 16, "n_routed_experts": 8,
                      "moe_topk": 2)"),
       "6 MLA", "1x576"},
      {"kimi", std::string(kKimiConfig), "1 MLA, 2 KDA", "1x40", 0, "conv 3x192 state 4x16x16 f32"},
  };
}

std::vector<AdapterCase> RecurrentCases() {
  return {
      {"qwen3-next by its interval",
       SmallConfig("Qwen3NextForCausalLM", Join(kDeltaFields, R"("head_dim": 8)")), "1 full, 3 GDN", "2x8", 0,
       "conv 3x64 state 4x8x8 auto"},
      {"qwen3.5 names its state's dtype",
       SmallWrapped("Qwen3_5ForConditionalGeneration",
                    Join(kDeltaFields, R"("mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1,
                           "layer_types": ["linear_attention", "full_attention", "linear_attention",
                                           "full_attention"])")),
       "2 full, 2 GDN", "2x8", 0, "conv 3x64 state 4x8x8 f32"},
      {"minimax-text-01",
       SmallConfig("MiniMaxText01ForCausalLM",
                   R"("attn_type_list": [0, 0, 0, 1], "num_local_experts": 4, "num_experts_per_tok": 2)"),
       "1 full, 3 lightning", "2x8", 0, "state 8x8x8 auto"},
      {"nemotron-h by letters", std::string(kNemotronConfig), "1 full, 3 mamba2, 3 none", "2x16", 0,
       "conv 3x256 state 8x16x32 f32"},
      {"nemotron-h by words",
       With(kNemotronConfig, R"("hybrid_override_pattern": "M-M*-ME")",
            R"("layers_block_type": ["mamba", "mlp", "mamba", "attention", "mlp", "mamba", "moe"])"),
       "1 full, 3 mamba2, 3 none", "2x16", 0, "conv 3x256 state 8x16x32 f32"},
      {"mamba", SmallConfig("MambaForCausalLM", R"("state_size": 4, "intermediate_size": null)"), "4 mamba1",
       "", 0, "conv 3x128 state 128x4 auto"},
      {"falcon-mamba: the width counts, not expand",
       SmallConfig("FalconMambaForCausalLM", R"("state_size": 4, "expand": 16)"), "4 mamba1", "", 0,
       "conv 3x128 state 128x4 auto"},
      {"mamba2",
       SmallConfig("Mamba2ForCausalLM", R"("num_heads": 16, "head_dim": 8, "state_size": 4, "n_groups": 2)"),
       "4 mamba2", "", 0, "conv 3x144 state 16x8x4 auto"},
      {"jamba",
       SmallConfig("JambaForCausalLM", R"("attn_layer_period": 4, "attn_layer_offset": 2, "num_experts": 4,
         "num_experts_per_tok": 2, "mamba_d_state": 4)"),
       "1 full, 3 mamba1", "2x8", 0, "conv 3x128 state 128x4 auto"},
      {"zamba2: two caches in hybrid layers",
       SmallConfig("Zamba2ForCausalLM", R"("num_key_value_heads": 8, "n_mamba_heads": 16, "mamba_headdim": 8,
         "mamba_d_state": 4, "mamba_ngroups": 1, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"])"),
       "2 full, 4 mamba2", "8x16", 0, "conv 3x136 state 16x8x4 auto"},
      {"zamba2, older names",
       SmallConfig("Zamba2ForCausalLM", R"("num_key_value_heads": 8, "n_mamba_heads": 16, "mamba_headdim": 8,
         "state_size": 4, "mamba_ngroups": 1, "hybrid_layer_ids": [1], "conv_dimension": 4, "expansion_factor": 2)"),
       "1 full, 4 mamba2", "8x16", 0, "conv 3x136 state 16x8x4 auto"},
      {"falcon-h1: two caches in every layer", SmallConfig("FalconH1ForCausalLM", kMambaFields),
       "4 full, 4 mamba2", "2x8", 0, "conv 3x136 state 16x8x4 auto"},
      {"granite",
       SmallConfig("GraniteMoeHybridForCausalLM",
                   Join(kMambaFields, R"("layer_types": ["mamba", "attention", "mamba", "mamba"],
                          "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 32)")),
       "1 full, 3 mamba2", "2x8", 0, "conv 3x136 state 16x8x4 auto"},
      {"granite that is not hybrid",
       SmallConfig("GraniteMoeHybridForCausalLM",
                   R"("layer_types": ["attention", "attention", "attention", "attention"])"),
       "4 full"},
      {"bamba", SmallConfig("BambaForCausalLM", Join(kMambaFields, R"("attn_layer_indices": [2])")),
       "1 full, 3 mamba2", "2x8", 0, "conv 3x136 state 16x8x4 auto"},
      {"lfm2", SmallConfig("Lfm2ForCausalLM", R"("layer_types": ["conv", "full_attention", "conv", "conv"])"),
       "1 full, 3 short conv", "2x8", 0, "conv 2x64"},
  };
}

// A draft of vllm-project/speculators that drafts 5 tokens.
std::string Speculators(std::string_view type, std::string_view layers, std::string_view fields) {
  return R"({"architectures": ["SomeSpeculator"], "torch_dtype": "bfloat16", "transformer_layer_config": )" +
         SmallConfig("Inner", R"("model_type": ")" + std::string(layers) + "\"") +
         R"(, "speculators_config": {"proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 5}],
         "verifier": {"name_or_path": "org/target"}}, "speculators_model_type": ")" +
         std::string(type) + "\", " + std::string(fields) + "}";
}

constexpr std::string_view kTaps = R"("mask_token_id": 999, "target_layer_ids": [0, 5])";

std::vector<AdapterCase> DraftCases() {
  const auto block = [](std::string_view architecture, std::string_view more) {
    return SmallConfig(architecture, R"("block_size": 16, "num_target_layers": 8, "dflash_config": {)" +
                                         Join(kTaps, R"("x": 1)") + std::string(more) + "}");
  };
  return {
      {"k3 dspark", std::string(kDsparkConfig), "2 MLA", "1x40"},
      {"eagle", SmallConfig("EagleLlamaForCausalLM", R"("num_hidden_layers": 1)"), "1 full"},
      {"eagle3 ignores a copied window",
       SmallConfig("LlamaForCausalLMEagle3", R"("num_hidden_layers": 1, "sliding_window": 64,
         "draft_vocab_size": 500)"),
       "1 full"},
      {"eagle over deepseek", SmallConfig("EagleDeepSeekMTPModel", kMlaFields), "4 MLA", "1x40"},
      {"dflash", block("DFlashDraftModel", ""), "4 full"},
      {"dflash with windows",
       SmallConfig("DFlashDraftModel", R"("block_size": 16, "num_target_layers": 8, "sliding_window": 64,
         "dflash_config": {"use_swa": true, "mask_token_id": 9, "target_layer_ids": [1]})"),
       "4 sliding", "2x8", 64},
      {"dflare", block("QwenDFlareDraftModel", ""), "4 full"},
      {"dspark", block("DSparkDraftModel", R"(, "projector_type": "dspark", "markov_rank": 8)"), "4 full"},
      {"domino", block("DominoDraftModel", R"(, "gru_hidden_dim": 8, "emb_dim": 4)"), "4 full"},
      {"p-eagle", SmallConfig("PEagleDraftModel", ""), "4 full"},
      {"speculators eagle3",
       Speculators("eagle3", "llama", R"("draft_vocab_size": 500, "target_hidden_size": null,
         "eagle_aux_hidden_state_layer_ids": [2, 16, 29])"),
       "4 full"},
      {"speculators p-eagle", Speculators("peagle", "qwen3", R"("mask_token_id": 999)"), "4 full"},
      {"speculators dflash",
       Speculators("dflash", "qwen3",
                   R"("mask_token_id": 999, "block_size": 8, "aux_hidden_state_layer_ids": [2, 9])"),
       "4 full"},
      {"speculators dspark", Speculators("dspark", "qwen3", R"("mask_token_id": 999, "block_size": 8,
         "aux_hidden_state_layer_ids": [2, 9], "markov_rank": 8, "enable_confidence_head": true,
         "speculators_config": {"proposal_methods": []})"),
       "4 full"},
  };
}

std::vector<AdapterCase> AllCases() {
  std::vector<AdapterCase> out;
  for (const auto& part : {DenseCases(), AttentionCases(), LatentCases(), RecurrentCases(), DraftCases()})
    out.insert(out.end(), part.begin(), part.end());
  return out;
}

class AdapterTest : public ::testing::TestWithParam<AdapterCase> {};

TEST_P(AdapterTest, ReadsTheLayers) {
  const AdapterCase& c = GetParam();
  const auto model = ReadConfigJson(c.config, "org/small");
  KVASIR_ASSERT_OK(model);
  EXPECT_EQ(KindsText(*model), c.kinds);
  EXPECT_EQ(HeadsText(*model), c.heads);
  EXPECT_EQ(WindowOf(*model), c.window);
  EXPECT_EQ(StatesText(*model), c.states);
  const auto again = ModelFromText(ModelToText(*model));
  KVASIR_ASSERT_OK(again);
  EXPECT_EQ(*again, *model);
  std::string file = c.what;
  std::replace_if(
      file.begin(), file.end(),
      [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) == 0; }, '_');
  ExpectGolden("model/small/" + file + ".txt", ModelToText(*model));
}
INSTANTIATE_TEST_SUITE_P(All, AdapterTest, ::testing::ValuesIn(AllCases()));

// A new adapter needs a case above.
TEST(Adapters, EachIsExercised) {
  std::set<AdapterRead> exercised;
  for (const AdapterCase& c : AllCases()) {
    for (const Adapter& adapter : Adapters()) {
      if (c.config.find("\"" + std::string(adapter.architecture) + "\"") != std::string::npos)
        exercised.insert(adapter.read);
    }
  }
  for (const Adapter& adapter : Adapters())
    EXPECT_TRUE(exercised.contains(adapter.read)) << adapter.architecture;
}

ModelDescription Read(const std::string& config) {
  const auto model = ReadConfigJson(config, "org/small");
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : ModelDescription{};
}

TEST(Adapters, Gemma3nSharesTheLastCacheOfItsKind) {
  const ModelDescription model = Read(AttentionCases()[0].config);
  std::string shares;
  for (const ModelLayer& layer : model.layers) {
    const auto& attention = std::get<AttentionShape>(layer.mixer);
    shares += attention.shares_with.has_value() ? std::to_string(*attention.shares_with) : "-";
  }
  EXPECT_EQ(shares, "------5554");  // full layers are 4 and 9
}

TEST(Adapters, Gemma4GivesFullLayersTheirOwnWidth) {
  const ModelDescription model = Read(AttentionCases()[1].config);
  const auto& full = std::get<AttentionShape>(model.layers[1].mixer);
  EXPECT_EQ(full.kv_heads, 1);
  EXPECT_EQ(full.head_dim, 16);
  EXPECT_TRUE(model.tied_embedding);
}

TEST(Adapters, MimoKeysAndValuesDiffer) {
  const ModelDescription model = Read(AttentionCases()[5].config);
  const auto& full = std::get<AttentionShape>(model.layers[0].mixer);
  const auto& sliding = std::get<AttentionShape>(model.layers[1].mixer);
  EXPECT_EQ(full.value_dim, 8);
  EXPECT_EQ(sliding.kv_heads, 4);
}

TEST(Adapters, NemotronNasReadsMlpWidths) {
  const ModelDescription model = Read(AttentionCases()[7].config);
  EXPECT_EQ(model.layers[0].mlp.intermediate, 256);  // 2/3 * 3 * 64 = 128, up to a multiple of 256
  EXPECT_EQ(model.layers[1].mlp, MlpShape{});
  EXPECT_EQ(model.layers[2].mlp.intermediate * 2, 64);
  EXPECT_TRUE(std::get<NoMixer>(model.layers[2].mixer).linear);
}

TEST(Adapters, V4CompressedLayersHaveTheirCachesInOrder) {
  const ModelDescription model = Read(LatentCases()[4].config);
  const std::vector<MixerShape>& extra = model.layers[1].extra;
  ASSERT_EQ(extra.size(), 4U);
  EXPECT_EQ(std::get<MlaShape>(extra[0]).ratio, 4);
  EXPECT_EQ(std::get<IndexerShape>(extra[1]).ratio, 4);
  EXPECT_EQ(std::get<CompressorShape>(extra[2]), (CompressorShape{4, 8, 128}));
  EXPECT_EQ(std::get<CompressorShape>(extra[3]), (CompressorShape{4, 8, 64}));
  EXPECT_EQ(std::get<CompressorShape>(model.layers[2].extra[1]), (CompressorShape{128, 128, 64}));
  ASSERT_EQ(model.mtp_layers.size(), 1U);
  EXPECT_TRUE(model.mtp_layers[0].extra.empty());
}

TEST(Adapters, DraftsSayHowTheyDraft) {
  const std::vector<AdapterCase> cases = DraftCases();
  const DraftShape eagle3 = *Read(cases[2].config).draft;
  EXPECT_EQ(eagle3.method, DraftMethod::kEagle3);
  EXPECT_TRUE(eagle3.causal);
  EXPECT_EQ(eagle3.head_vocab, 500);
  const DraftShape dflash = *Read(cases[4].config).draft;
  EXPECT_EQ(dflash.method, DraftMethod::kDflash);
  EXPECT_FALSE(dflash.causal);
  EXPECT_EQ(dflash.block, 16);
  EXPECT_EQ(dflash.target_layers, 8);
  EXPECT_EQ(dflash.mask_token, 999);
  const DraftShape windowed = *Read(cases[5].config).draft;
  EXPECT_FALSE(windowed.causal);
  EXPECT_TRUE(windowed.windowed_causal);
  EXPECT_EQ(Read(cases[6].config).draft->method, DraftMethod::kDflare);
  const DraftShape dspark = *Read(cases[7].config).draft;
  EXPECT_EQ(dspark.method, DraftMethod::kDspark);
  EXPECT_EQ(dspark.markov_rank, 8);
  const DraftShape domino = *Read(cases[8].config).draft;
  EXPECT_EQ(domino.method, DraftMethod::kDomino);
  EXPECT_EQ(domino.gru_dim, 8);
  EXPECT_EQ(Read(cases[9].config).draft->method, DraftMethod::kPeagle);
}

TEST(Adapters, SpeculatorsCountTapsAndTokensAsTheEngineDoes) {
  const std::vector<AdapterCase> cases = DraftCases();
  const DraftShape eagle3 = *Read(cases[10].config).draft;
  EXPECT_EQ(eagle3.method, DraftMethod::kEagle3);
  EXPECT_EQ(eagle3.target_taps, (std::vector<std::int64_t>{2, 16, 29}));
  EXPECT_EQ(eagle3.target_hidden, 64);
  EXPECT_EQ(eagle3.head_vocab, 500);
  EXPECT_EQ(TrainedTokens(eagle3), 5);
  EXPECT_EQ(Read(cases[11].config).draft->method, DraftMethod::kPeagle);
  const DraftShape dflash = *Read(cases[12].config).draft;
  EXPECT_EQ(dflash.target_taps,
            (std::vector<std::int64_t>{1, 8}));  // the embedding's output is not a layer's
  EXPECT_FALSE(dflash.causal);
  EXPECT_EQ(TrainedTokens(dflash), 5);
  const DraftShape dspark = *Read(cases[13].config).draft;
  EXPECT_EQ(dspark.markov_rank, 8);
  EXPECT_EQ(TrainedTokens(dspark), 7);  // of a block of 8 that begins with the anchor
}

TEST(Adapters, SpeculatorsOfUnknownMethodsAndLayersAreNamed) {
  for (const auto& [config, field] :
       {std::pair{Speculators("mlp", "llama", R"("x": 1)"), "speculators_model_type"},
        std::pair{Speculators("eagle3", "mamba", R"("x": 1)"), "transformer_layer_config.model_type"},
        std::pair{Speculators("dflash", "qwen3", R"("mask_token_id": 9)"), "aux_hidden_state_layer_ids"},
        std::pair{std::string(R"({"speculators_model_type": "eagle3"})"), "transformer_layer_config"}}) {
    const auto model = ReadConfigJson(config, "org/small");
    ASSERT_FALSE(model.ok());
    EXPECT_THAT(std::string(model.status().message()), ::testing::HasSubstr(field));
  }
}

TEST(Adapters, DflashCausalityOverridesWindows) {
  const std::string config =
      With(DraftCases()[5].config, R"("use_swa": true)", R"("use_swa": true, "causal": false)");
  EXPECT_FALSE(Read(config).draft->windowed_causal);
}

TEST(Adapters, DtypeDefaultsToBf16AndMayStandOutside) {
  EXPECT_EQ(Read(With(SmallConfig("LlamaForCausalLM", ""), R"("torch_dtype": "bfloat16",)", "")).dtype,
            DType::kBf16);
  std::string wrapped = SmallWrapped("Qwen3VLForConditionalGeneration", "");
  wrapped = With(wrapped, R"("torch_dtype": "bfloat16",)", "");
  EXPECT_EQ(Read(With(wrapped, R"("text_config")", R"("dtype": "float16", "text_config")")).dtype,
            DType::kF16);
}

}  // namespace
}  // namespace kvasir::testing
