// The fields that several families spell alike.
#ifndef KVASIR_COMMON_MODELS_CONFIG_FIELDS_H_
#define KVASIR_COMMON_MODELS_CONFIG_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/limits.h"
#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir {

inline constexpr IntRange kDimRange{1, kDimMax};
inline constexpr IntRange kDimOrNoneRange{0, kDimMax};
inline constexpr IntRange kHeadsRange{1, kHeadsMax};
inline constexpr IntRange kLayersRange{1, kLayersMax};
inline constexpr IntRange kTokensRange{1, kContextTokensMax};
inline constexpr IntRange kKernelRange{2, kDimMax};

// What a family's class falls back to where a raw file leaves a field out.
struct ModelDefaults {
  std::string_view eps_field = "rms_norm_eps";
  std::int64_t vocab = 0;    // 0: the field must be there
  std::int64_t context = 0;  // the same
  bool tied = false;         // the output head is the embedding table
};

// hidden_size, vocab_size, the context limit and the epsilon of the norms. Dtype, tied embeddings and
// quantisation, which may stand in a wrapper, are read in read_config.cc.
void ReadModelFields(const ConfigObject& config, const ModelDefaults& defaults, ModelDescription& model);

// rope_theta with rope_scaling (the older form), or rope_parameters (the newer, possibly one for each kind of
// layer); partial_rotary_factor in either place.
[[nodiscard]] Rope ReadRope(const ConfigObject& config);

// What stands in for absent fields of attention; no heads: the fields must be there.
struct HeadDefaults {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

// num_attention_heads, the key-value heads under one of their names, head_dim (or hidden / heads).
[[nodiscard]] AttentionShape ReadAttention(const ConfigObject& config, std::int64_t hidden,
                                           const HeadDefaults& defaults = {});

// num_attention_heads and the five MLA dims; `rotate` and `output_gate` keep their defaults.
[[nodiscard]] MlaShape ReadMla(const ConfigObject& config);

// num_hidden_layers.
[[nodiscard]] std::int64_t ReadLayerCount(const ConfigObject& config);

// layer_types, one word a layer; empty if the field is absent. A longer list (layers of multi-token
// prediction follow) is cut, a shorter one is a contradiction.
[[nodiscard]] std::vector<std::string> ReadLayerTypes(const ConfigObject& config, std::int64_t layers);

// Whether a family's window needs a switch of its own (Qwen: use_sliding_window, false if absent).
enum class WindowSwitch : std::int8_t { kIfPresent, kRequired };

// The window of each layer, 0 = full. layer_types rules where it stands. Without it a window holds for all
// layers; where use_sliding_window stands, only if that is true, and from layer max_window_layers on.
[[nodiscard]] std::vector<std::int64_t> ReadWindows(const ConfigObject& config, std::int64_t layers,
                                                    WindowSwitch by_switch);

// The same with layer i full where (i + 1) % pattern == 0, if the file has no layer_types.
[[nodiscard]] std::vector<std::int64_t> ReadWindowsByPattern(const ConfigObject& config, std::int64_t layers,
                                                             std::int64_t pattern);

// The recurrent state's dtype: float32, bfloat16 or float16, "auto" or an absent field follows `fallback`.
[[nodiscard]] std::optional<DType> ReadStateDType(const ConfigObject& config, std::string_view field,
                                                  std::optional<DType> fallback);

// Appends a layer, numbered by its place.
void AddLayer(const MixerShape& mixer, const MlpShape& mlp, std::vector<ModelLayer>& layers);

// num_nextn_predict_layers layers of multi-token prediction, each like `layer`.
void AddMtpLayers(const ConfigObject& config, std::string_view field, const ModelLayer& layer,
                  ModelDescription& model);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_CONFIG_FIELDS_H_
