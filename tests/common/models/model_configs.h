// Small configurations of our own, one per family, in the spelling of the public ones.
#ifndef KVASIR_TESTS_COMMON_MODELS_MODEL_CONFIGS_H_
#define KVASIR_TESTS_COMMON_MODELS_MODEL_CONFIGS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir::testing {

inline constexpr std::string_view kDeepseekConfig = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "torch_dtype": "bfloat16",
  "hidden_size": 64, "vocab_size": 1000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-06,
  "num_hidden_layers": 4, "num_attention_heads": 4, "q_lora_rank": null, "kv_lora_rank": 32,
  "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "intermediate_size": 128,
  "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 32,
  "n_group": 4, "topk_group": 2, "first_k_dense_replace": 1, "moe_layer_freq": 2, "rope_theta": 10000,
  "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 512, "mscale": 0.707}
})";

inline constexpr std::string_view kKimiConfig = R"({
  "architectures": ["KimiK3ForConditionalGeneration"], "dtype": "bfloat16",
  "text_config": {
    "dtype": "bfloat16", "hidden_size": 64, "vocab_size": 1000, "model_max_length": 2048, "rms_norm_eps": 1e-05,
    "num_hidden_layers": 3, "num_attention_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 32,
    "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "mla_use_nope": true,
    "mla_use_output_gate": true, "intermediate_size": 128, "head_dim": 74,
    "linear_attn_config": {"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4,
                           "kda_layers": [1, 2], "full_attn_layers": [3]}
  }
})";

inline constexpr std::string_view kDsparkConfig = R"({
  "architectures": ["K3DSparkModel"], "torch_dtype": "bfloat16",
  "hidden_size": 64, "vocab_size": 1000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-05,
  "num_hidden_layers": 2, "num_attention_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 32,
  "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "intermediate_size": 128,
  "num_target_layers": 2, "target_hidden_size": 64, "target_num_hidden_layers": 3, "target_layer_ids": [0, 2],
  "mask_token_id": 999, "markov_rank": 8, "markov_head_type": "vanilla", "enable_confidence_head": true,
  "draft_vocab_size": 1000, "rope_theta": 50000.0,
  "rope_parameters": {"rope_type": "yarn", "rope_theta": 50000.0, "factor": 4.0,
                      "original_max_position_embeddings": 512}
})";

inline constexpr std::string_view kQwenConfig = R"({
  "architectures": ["Qwen3ForCausalLM"], "torch_dtype": "bfloat16",
  "hidden_size": 64, "vocab_size": 1000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-06,
  "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
  "intermediate_size": 128, "tie_word_embeddings": true, "rope_theta": 1000000, "rope_scaling": null,
  "use_sliding_window": false, "sliding_window": 512, "max_window_layers": 2
})";

inline constexpr std::string_view kNemotronConfig = R"({
  "architectures": ["NemotronHForCausalLM"], "torch_dtype": "bfloat16",
  "hidden_size": 64, "vocab_size": 1000, "max_position_embeddings": 2048, "layer_norm_epsilon": 1e-05,
  "hybrid_override_pattern": "M-M*-ME", "num_hidden_layers": 7, "num_attention_heads": 8,
  "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "mamba_num_heads": 8, "mamba_head_dim": 16,
  "ssm_state_size": 32, "n_groups": 2, "conv_kernel": 4, "n_routed_experts": 8, "num_experts_per_tok": 2,
  "moe_intermediate_size": 32
})";

// `config` with its first `from` replaced; the text must be there.
inline std::string With(std::string_view config, std::string_view from, std::string_view to) {
  std::string out(config);
  const std::size_t at = out.find(from);
  if (at == std::string::npos) return "the test replaces text that is not there";
  return out.replace(at, from.size(), to);
}

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_COMMON_MODELS_MODEL_CONFIGS_H_
