// Fields of a config.json that somebody lays over a model, where its own config.json is not at hand: the
// length that it claims and its rotary embedding.
#ifndef KVASIR_COMMON_MODELS_OVERRIDE_MODEL_H_
#define KVASIR_COMMON_MODELS_OVERRIDE_MODEL_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir {

// `overrides` is the text of a JSON object of such fields, which may lie in "text_config". Returns the fields
// that say something else, by their names; they change nothing. InvalidArgument (config_error.h) for a value
// of another type or out of its range, and then `model` is as it was.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> OverrideModel(std::string_view overrides,
                                                                     ModelDescription& model);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_OVERRIDE_MODEL_H_
