// A small configuration of our own with the fields that most families share.
#ifndef KVASIR_TESTS_COMMON_MODELS_SMALL_CONFIG_H_
#define KVASIR_TESTS_COMMON_MODELS_SMALL_CONFIG_H_

#include <string>
#include <string_view>

namespace kvasir::testing {

// 8 heads of 8 over 2 key-value heads, hidden 64, vocabulary 1000; `fields` (without braces) are added and
// win over those.
inline std::string SmallConfig(std::string_view architecture, std::string_view fields) {
  return R"({"architectures": [")" + std::string(architecture) + R"("], "torch_dtype": "bfloat16",
    "hidden_size": 64, "vocab_size": 1000, "max_position_embeddings": 2048, "num_attention_heads": 8,
    "num_key_value_heads": 2, "intermediate_size": 128, "num_hidden_layers": 4)" +
         (fields.empty() ? "" : ", ") + std::string(fields) + "}";
}

// The same inside `text_config`.
inline std::string SmallWrapped(std::string_view architecture, std::string_view fields) {
  return R"({"architectures": [")" + std::string(architecture) + R"("], "text_config": )" +
         SmallConfig("Inner", fields) + "}";
}

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_COMMON_MODELS_SMALL_CONFIG_H_
