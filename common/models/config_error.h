// What is wrong with a model's configuration, as a value: which kind of fault, which field, what stood there,
// and the way out. The text for people is made from it in one place; services read the parts back from the
// status.
#ifndef KVASIR_COMMON_MODELS_CONFIG_ERROR_H_
#define KVASIR_COMMON_MODELS_CONFIG_ERROR_H_

#include <cstddef>
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

// NOT_JSON | UNKNOWN_ARCHITECTURE | MISSING_FIELD | WRONG_TYPE | OUT_OF_LIMIT | CONTRADICTION | UNSUPPORTED
[[nodiscard]] std::string_view ConfigFaultName(ConfigFault fault);

struct ConfigError {
  ConfigFault fault = ConfigFault::kNotJson;
  std::string field;  // "text_config.kv_lora_rank"; empty where the whole text is at fault
  std::string value;  // as it stood there, shortened; empty if there is none
  std::string fix;    // what is expected, or what to do
  friend bool operator==(const ConfigError&, const ConfigError&) = default;
};

// A typed error (common/base/typed_error.h), InvalidArgument with reason MODEL_CONFIG_INVALID and metadata
// `model`, `fault`, `value` and `expected`: "<model>: vocab_size = -1: expected an integer from 1 to
// 1048576". Parts are cut to a length that a message may carry and hold printable ASCII only.
[[nodiscard]] absl::Status ToStatus(const ConfigError& error, std::string_view model);

// `text` as a message may show it: printable ASCII, at most `bytes_max` bytes and "..." where it was cut.
[[nodiscard]] std::string ShownText(std::string_view text, std::size_t bytes_max = 600);

// The parts, if `status` was made by ToStatus.
[[nodiscard]] std::optional<ConfigError> ConfigErrorOf(const absl::Status& status);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_CONFIG_ERROR_H_
