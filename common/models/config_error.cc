#include "common/models/config_error.h"

#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/cord.h"

namespace kvasir {
namespace {

constexpr std::array kFaults = {
    std::pair{ConfigFault::kNotJson, std::string_view("MODEL_NOT_JSON")},
    std::pair{ConfigFault::kUnknownArchitecture, std::string_view("MODEL_UNKNOWN_ARCHITECTURE")},
    std::pair{ConfigFault::kMissingField, std::string_view("MODEL_MISSING_FIELD")},
    std::pair{ConfigFault::kWrongType, std::string_view("MODEL_WRONG_TYPE")},
    std::pair{ConfigFault::kOutOfLimit, std::string_view("MODEL_OUT_OF_LIMIT")},
    std::pair{ConfigFault::kContradiction, std::string_view("MODEL_CONTRADICTION")},
    std::pair{ConfigFault::kUnsupported, std::string_view("MODEL_UNSUPPORTED")},
};

constexpr const char* kFaultPayload = "kvasir.model/fault";
constexpr const char* kFieldPayload = "kvasir.model/field";
constexpr const char* kValuePayload = "kvasir.model/value";
constexpr const char* kFixPayload = "kvasir.model/fix";

constexpr std::size_t kShownBytesMax = 600;

// Printable ASCII only, and not longer than a message should be: the text may come from a hostile file.
std::string Shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kShownBytesMax)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (text.size() > kShownBytesMax) out += "...";
  return out;
}

}  // namespace

std::string_view ConfigFaultName(ConfigFault fault) {
  for (const auto& [known, name] : kFaults) {
    if (known == fault) return name;
  }
  return "MODEL_INVALID";
}

absl::Status ToStatus(const ConfigError& error, std::string_view model) {
  const std::string field = Shown(error.field);
  const std::string value = Shown(error.value);
  const std::string fix = Shown(error.fix);
  std::string message = Shown(model) + ": " + std::string(ConfigFaultName(error.fault)) + ": ";
  if (!field.empty()) message += field + (value.empty() ? "" : " = " + value) + ": ";
  message += fix;
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kFaultPayload, absl::Cord(std::string(ConfigFaultName(error.fault))));
  status.SetPayload(kFieldPayload, absl::Cord(field));
  status.SetPayload(kValuePayload, absl::Cord(value));
  status.SetPayload(kFixPayload, absl::Cord(fix));
  return status;
}

std::optional<ConfigError> ConfigErrorOf(const absl::Status& status) {
  const auto fault_name = status.GetPayload(kFaultPayload);
  const auto field = status.GetPayload(kFieldPayload);
  const auto value = status.GetPayload(kValuePayload);
  const auto fix = status.GetPayload(kFixPayload);
  if (!fault_name || !field || !value || !fix) return std::nullopt;
  for (const auto& [fault, name] : kFaults) {
    if (std::string(*fault_name) == name) {
      return ConfigError{fault, std::string(*field), std::string(*value), std::string(*fix)};
    }
  }
  return std::nullopt;
}

}  // namespace kvasir
