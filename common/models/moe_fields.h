// The dense MLPs and mixtures of experts of a model's layers, in the spellings that families share.
#ifndef KVASIR_COMMON_MODELS_MOE_FIELDS_H_
#define KVASIR_COMMON_MODELS_MOE_FIELDS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir {

// The names that a family gives to its experts' fields. An empty name: the family has no such field.
struct ExpertFields {
  std::string_view experts = "n_routed_experts";
  std::string_view per_token = "num_experts_per_tok";
  std::string_view shared = "n_shared_experts";
  std::string_view intermediate = "moe_intermediate_size";
  std::string_view shared_intermediate = "";  // of all shared experts together
  std::string_view latent = "";
};

[[nodiscard]] MlpShape ReadDense(const ConfigObject& config, std::string_view field = "intermediate_size");
[[nodiscard]] MlpShape ReadExperts(const ConfigObject& config, const ExpertFields& fields);
// Whether the file names at least one expert.
[[nodiscard]] bool HasExperts(const ConfigObject& config, const ExpertFields& fields);

// The scoring that a file calls `word`; unstated where nothing here knows it, so that the model can still be
// planned.
[[nodiscard]] ExpertScoring ScoringOf(std::string_view word);
inline constexpr RealRange kRoutedScaleRange{1e-6, 1e6};

// What each layer has; a dense MLP or experts.
struct LayerMlps {
  MlpShape dense;
  MlpShape experts;
  std::vector<bool> sparse;  // by layer: whether it has experts
  [[nodiscard]] const MlpShape& At(std::int64_t layer) const {
    return sparse[static_cast<std::size_t>(layer)] ? experts : dense;
  }
};

// As the DeepSeek family spells it: dense for the first `first_k_dense_replace` layers and those that
// `moe_layer_freq` (a number, or 0 and 1 for each layer) skips. Without experts all layers are dense.
[[nodiscard]] LayerMlps ReadMlps(const ConfigObject& config, const ExpertFields& fields, std::int64_t layers,
                                 std::string_view dense_field = "intermediate_size");

// Fills in the shapes that `sparse` calls for.
[[nodiscard]] LayerMlps ReadMlpsOf(const ConfigObject& config, const ExpertFields& fields,
                                   std::vector<bool> sparse, std::string_view dense_field);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MOE_FIELDS_H_
