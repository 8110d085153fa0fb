// What is wrong with a model's configuration, as a value: which kind of fault, which field, what stood there,
// and the way out. The text for people is made from it in one place; services read the parts back from the
// status.
#ifndef KVASIR_COMMON_MODELS_CONFIG_ERROR_H_
#define KVASIR_COMMON_MODELS_CONFIG_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvasir {

enum class ConfigFault : std::int8_t {
  kNotJson,              // the text is no JSON object, or too large or too deep
  kUnknownArchitecture,  // no adapter reads this architecture
  kMissingField,
  kWrongType,
  kOutOfLimit,
  kContradiction,  // two fields that cannot both be right
  kUnsupported,    // well-formed, but describes something that no part of Kvasir can plan yet
};

// MODEL_NOT_JSON | MODEL_UNKNOWN_ARCHITECTURE | MODEL_MISSING_FIELD | MODEL_WRONG_TYPE | MODEL_OUT_OF_LIMIT |
// MODEL_CONTRADICTION | MODEL_UNSUPPORTED
[[nodiscard]] std::string_view ConfigFaultName(ConfigFault fault);

struct ConfigError {
  ConfigFault fault = ConfigFault::kNotJson;
  std::string field;  // "text_config.kv_lora_rank"; empty where the whole text is at fault
  std::string value;  // as it stood there, shortened; empty if there is none
  std::string fix;    // what is expected, or what to do
  friend bool operator==(const ConfigError&, const ConfigError&) = default;
};

// InvalidArgument: "<model>: MODEL_OUT_OF_LIMIT: vocab_size = -1: expected 1 .. 1048576". The error's parts
// travel along as status payloads. `value` and `fix` are cut to a length that a message may carry.
[[nodiscard]] absl::Status ToStatus(const ConfigError& error, std::string_view model);

// The parts, if `status` was made by ToStatus.
[[nodiscard]] std::optional<ConfigError> ConfigErrorOf(const absl::Status& status);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_CONFIG_ERROR_H_
