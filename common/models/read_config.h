// Reads a Hugging Face config.json into a ModelDescription. One adapter per family (adapters.h lists them).
#ifndef KVASIR_COMMON_MODELS_READ_CONFIG_H_
#define KVASIR_COMMON_MODELS_READ_CONFIG_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir {

// `json` is the text of a config.json; `name` is used for the description and in messages.
// InvalidArgument names the field, its value and the fix: not JSON, unknown architecture, missing field,
// wrong type, out of limits, contradictory fields.
[[nodiscard]] absl::StatusOr<ModelDescription> ReadConfigJson(std::string_view json, std::string_view name);

// A config.json, or a directory that holds one. NotFound where the path does not exist.
[[nodiscard]] absl::StatusOr<ModelDescription> ReadConfigPath(std::string_view path);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_READ_CONFIG_H_
