// The limits and the inner consistency that every model description meets, wherever it came from.
#ifndef KVASIR_COMMON_MODELS_CHECK_MODEL_H_
#define KVASIR_COMMON_MODELS_CHECK_MODEL_H_

#include <optional>
#include <string_view>

#include "common/models/config_error.h"
#include "common/models/model_description.h"

namespace kvasir {

// The first fault, or nullopt: limits of common/base/limits.h, dense layer indices, kv_heads dividing heads,
// draft taps ascending and inside the target, and so on. Field names are those of the canonical text ("layer
// 3 kv_lora_rank").
[[nodiscard]] std::optional<ConfigError> FindModelFault(const ModelDescription& model);

// Letters, digits and "._/+:@-", 1 to kNameBytesMax bytes: names stand unquoted in canonical text.
[[nodiscard]] bool IsModelName(std::string_view name);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_CHECK_MODEL_H_
