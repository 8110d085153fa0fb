// The fields that several families spell alike.
#ifndef KVASIR_COMMON_MODELS_CONFIG_FIELDS_H_
#define KVASIR_COMMON_MODELS_CONFIG_FIELDS_H_

#include <cstdint>
#include <string_view>

#include "common/base/limits.h"
#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir {

inline constexpr IntRange kDimRange{1, kDimMax};
inline constexpr IntRange kHeadsRange{1, kHeadsMax};
inline constexpr IntRange kLayersRange{1, kLayersMax};

// hidden_size, vocab_size, the context limit, dtype (or torch_dtype), tie_word_embeddings, and the RMS
// epsilon under the name that the family gives it.
void ReadModelFields(const ConfigObject& config, std::string_view eps_field, ModelDescription& model);

// rope_theta with rope_scaling (the older form), or rope_parameters (the newer); plain and YaRN only.
[[nodiscard]] Rope ReadRope(const ConfigObject& config);

// num_attention_heads and the five MLA dims; `rotate` and `output_gate` keep their defaults.
[[nodiscard]] MlaShape ReadMla(const ConfigObject& config);

// The names that a family gives to its experts' fields.
struct ExpertFields {
  std::string_view experts;
  std::string_view per_token;
  std::string_view shared;
};

// intermediate_size for the first `first_k_dense_replace` layers and those that `moe_layer_freq` skips;
// experts for the rest. A model without the experts' field is dense throughout.
class LayerMlps {
 public:
  LayerMlps(const ConfigObject& config, const ExpertFields& fields);
  [[nodiscard]] MlpShape At(std::int64_t layer) const;

 private:
  MlpShape dense_;
  MlpShape experts_;
  std::int64_t first_experts_ = 0;  // layer; past every layer if there are none
  std::int64_t every_ = 1;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_CONFIG_FIELDS_H_
