#include "common/models/config_error.h"

#include <array>
#include <cstddef>
#include <utility>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr std::array kFaults = {
    std::pair{ConfigFault::kNotJson, std::string_view("NOT_JSON")},
    std::pair{ConfigFault::kUnknownArchitecture, std::string_view("UNKNOWN_ARCHITECTURE")},
    std::pair{ConfigFault::kMissingField, std::string_view("MISSING_FIELD")},
    std::pair{ConfigFault::kWrongType, std::string_view("WRONG_TYPE")},
    std::pair{ConfigFault::kOutOfLimit, std::string_view("OUT_OF_LIMIT")},
    std::pair{ConfigFault::kContradiction, std::string_view("CONTRADICTION")},
    std::pair{ConfigFault::kUnsupported, std::string_view("UNSUPPORTED")},
};

}  // namespace

std::string_view ConfigFaultName(ConfigFault fault) {
  for (const auto& [known, name] : kFaults) {
    if (known == fault) return name;
  }
  return "INVALID";
}

std::string ShownText(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (const char c : text.substr(0, bytes_max)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (text.size() > bytes_max) out += "...";
  return out;
}

absl::Status ToStatus(const ConfigError& error, std::string_view model) {
  TypedError typed;
  typed.code = absl::StatusCode::kInvalidArgument;
  typed.reason = reason::kModelConfigInvalid;
  typed.field = ShownText(error.field);
  typed.metadata = {{"model", ShownText(model)},
                    {"fault", std::string(ConfigFaultName(error.fault))},
                    {"value", ShownText(error.value)},
                    {"expected", ShownText(error.fix)}};
  typed.message = typed.metadata["model"] + ": ";
  if (!typed.field.empty()) {
    typed.message += typed.field + (error.value.empty() ? "" : " = " + typed.metadata["value"]) + ": ";
  }
  typed.message += typed.metadata["expected"];
  return MakeError(typed);
}

std::optional<ConfigError> ConfigErrorOf(const absl::Status& status) {
  TypedError typed = ErrorOf(status);
  if (status.ok() || typed.reason != reason::kModelConfigInvalid) return std::nullopt;
  for (const auto& [fault, name] : kFaults) {
    if (typed.metadata["fault"] == name) {
      return ConfigError{fault, typed.field, typed.metadata["value"], typed.metadata["expected"]};
    }
  }
  return std::nullopt;
}

}  // namespace kvasir
