// From the bytes of a config.json to a JSON object.
#ifndef KVASIR_COMMON_MODELS_CONFIG_TEXT_H_
#define KVASIR_COMMON_MODELS_CONFIG_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvasir {

// The parsed object. Infinity, -Infinity and NaN, which Python writes into such files, are read as 1e308,
// -1e308 and null. InvalidArgument (NOT_JSON) for other text, more than 4 MiB, or a nesting that no
// configuration has; `name` is for the message.
[[nodiscard]] absl::StatusOr<nlohmann::json> ParseConfigText(std::string_view text, std::string_view name);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_CONFIG_TEXT_H_
