#include "common/models/config_object.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"

namespace kvasir {
namespace {

using Json = nlohmann::json;

// A value as it stood in the file, short enough to show. Invalid UTF-8 is replaced instead of thrown on.
std::string Show(const Json& value) {
  if (value.is_object()) return "{...}";
  if (value.is_array()) return absl::StrFormat("[%d entries]", value.size());
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// The 64-bit integer that `value` is, or nullopt. 32.0 is a real number, not an integer.
std::optional<std::int64_t> AsInt(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto wide = value.get<std::uint64_t>();
    if (wide > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(wide);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

std::string Expected(IntRange range) {
  return absl::StrFormat("expected an integer from %d to %d", range.min, range.max);
}

}  // namespace

const Json* ConfigObject::Find(std::string_view field) const {
  const auto it = node_->find(std::string(field));
  if (it == node_->end() || it->is_null()) return nullptr;
  return &*it;
}

const Json* ConfigObject::Require(std::string_view field, std::string_view expected) const {
  const Json* value = Find(field);
  if (value == nullptr) {
    FailValue(ConfigFault::kMissingField, field, "", absl::StrFormat("missing; %s", expected));
  }
  return value;
}

bool ConfigObject::Has(std::string_view field) const { return Find(field) != nullptr; }

void ConfigObject::FailValue(ConfigFault fault, std::string_view field, std::string value,
                             std::string fix) const {
  if (error_->has_value()) return;
  *error_ = ConfigError{fault, path_ + std::string(field), std::move(value), std::move(fix)};
}

void ConfigObject::Fail(ConfigFault fault, std::string_view field, std::string fix) const {
  const Json* value = Find(field);
  FailValue(fault, field, value == nullptr ? "" : Show(*value), std::move(fix));
}

std::int64_t ConfigObject::ToInt(const Json& value, std::string_view field, IntRange range) const {
  const bool too_large = value.is_number_unsigned() && !AsInt(value).has_value();
  const std::optional<std::int64_t> number = AsInt(value);
  if (!number.has_value() && !too_large) {
    FailValue(ConfigFault::kWrongType, field, Show(value), Expected(range));
    return range.min;
  }
  if (too_large || *number < range.min || *number > range.max) {
    FailValue(ConfigFault::kOutOfLimit, field, Show(value), Expected(range));
    return range.min;
  }
  return *number;
}

std::int64_t ConfigObject::Int(std::string_view field, IntRange range) const {
  const Json* value = Require(field, Expected(range));
  return value == nullptr ? range.min : ToInt(*value, field, range);
}

std::int64_t ConfigObject::IntOr(std::string_view field, IntRange range, std::int64_t fallback) const {
  const Json* value = Find(field);
  return value == nullptr ? fallback : ToInt(*value, field, range);
}

double ConfigObject::Real(std::string_view field, RealRange range) const {
  const Json* value =
      Require(field, absl::StrFormat("expected a number from %g to %g", range.min, range.max));
  return value == nullptr ? range.min : RealOr(field, range, range.min);
}

double ConfigObject::RealOr(std::string_view field, RealRange range, double fallback) const {
  const Json* value = Find(field);
  if (value == nullptr) return fallback;
  const std::string expected = absl::StrFormat("expected a number from %g to %g", range.min, range.max);
  if (!value->is_number()) {
    FailValue(ConfigFault::kWrongType, field, Show(*value), expected);
    return range.min;
  }
  const double number = value->get<double>();
  if (!std::isfinite(number) || number < range.min || number > range.max) {
    FailValue(ConfigFault::kOutOfLimit, field, Show(*value), expected);
    return range.min;
  }
  return number;
}

bool ConfigObject::BoolOr(std::string_view field, bool fallback) const {
  const Json* value = Find(field);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    FailValue(ConfigFault::kWrongType, field, Show(*value), "expected true or false");
    return false;
  }
  return value->get<bool>();
}

std::string ConfigObject::Text(std::string_view field) const {
  return Require(field, "expected a string") == nullptr ? std::string() : TextOr(field, "");
}

std::string ConfigObject::TextOr(std::string_view field, std::string_view fallback) const {
  const Json* value = Find(field);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) {
    FailValue(ConfigFault::kWrongType, field, Show(*value), "expected a string");
    return {};
  }
  return value->get<std::string>();
}

const Json* ConfigObject::RequireList(std::string_view field, std::string_view expected,
                                      std::int64_t entries_max) const {
  const Json* value = Require(field, expected);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    FailValue(ConfigFault::kWrongType, field, Show(*value), std::string(expected));
    return nullptr;
  }
  if (value->size() > static_cast<std::size_t>(entries_max)) {
    FailValue(ConfigFault::kOutOfLimit, field, Show(*value),
              absl::StrFormat("at most %d entries", entries_max));
    return nullptr;
  }
  return value;
}

std::vector<std::int64_t> ConfigObject::IntList(std::string_view field, IntRange range) const {
  const Json* value = RequireList(field, "expected a list of integers", kLayersMax);
  if (value == nullptr) return {};
  std::vector<std::int64_t> out;
  for (const Json& entry : *value) {
    out.push_back(ToInt(entry, absl::StrFormat("%s[%d]", field, out.size()), range));
  }
  return out;
}

std::vector<std::string> ConfigObject::TextList(std::string_view field, std::int64_t entries_max) const {
  const Json* value = RequireList(field, "expected a list of strings", entries_max);
  if (value == nullptr) return {};
  std::vector<std::string> out;
  for (const Json& entry : *value) {
    if (!entry.is_string()) {
      FailValue(ConfigFault::kWrongType, absl::StrFormat("%s[%d]", field, out.size()), Show(entry),
                "expected a string");
      return {};
    }
    out.push_back(entry.get<std::string>());
  }
  return out;
}

std::vector<ConfigObject> ConfigObject::Objects(std::string_view field) const {
  const Json* value = RequireList(field, "expected a list of objects", kLayersMax);
  if (value == nullptr) return {};
  std::vector<ConfigObject> out;
  for (const Json& entry : *value) {
    const std::string place = absl::StrFormat("%s[%d]", field, out.size());
    if (!entry.is_object()) {
      FailValue(ConfigFault::kWrongType, place, Show(entry), "expected an object");
      return {};
    }
    out.push_back(ConfigObject(entry, path_ + place + ".", *error_));
  }
  return out;
}

std::optional<ConfigObject> ConfigObject::ObjectIf(std::string_view field) const {
  return Has(field) ? Object(field) : std::nullopt;
}

std::vector<std::pair<std::string, ConfigObject>> ConfigObject::Members() const {
  std::vector<std::pair<std::string, ConfigObject>> out;
  for (const auto& [name, value] : node_->items()) {
    if (value.is_object()) out.emplace_back(name, ConfigObject(value, path_ + name + ".", *error_));
  }
  return out;
}

bool ConfigObject::IsList(std::string_view field) const {
  const Json* value = Find(field);
  return value != nullptr && value->is_array();
}

bool ConfigObject::IsText(std::string_view field) const {
  const Json* value = Find(field);
  return value != nullptr && value->is_string();
}

std::string_view ConfigObject::FirstOf(std::initializer_list<std::string_view> fields) const {
  for (const std::string_view field : fields) {
    if (Has(field)) return field;
  }
  return *fields.begin();
}

std::optional<ConfigObject> ConfigObject::Object(std::string_view field) const {
  const Json* value = Require(field, "expected an object");
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    FailValue(ConfigFault::kWrongType, field, Show(*value), "expected an object");
    return std::nullopt;
  }
  return ConfigObject(*value, path_ + std::string(field) + ".", *error_);
}

}  // namespace kvasir
