#include "planner/request/case_object.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {

CaseObject::CaseObject(const nlohmann::json& node, std::string path, absl::Status& error)
    : node_(&node), path_(std::move(path)), error_(&error) {
  if (node.is_object()) return;
  Fail(reason::kMalformedMessage, "", node, "is not an object");
  static const nlohmann::json kEmpty = nlohmann::json::object();
  node_ = &kEmpty;
}

std::string CaseObject::PathOf(std::string_view key) const {
  if (key.empty()) return path_;
  return path_.empty() ? std::string(key) : absl::StrFormat("%s.%s", path_, key);
}

const nlohmann::json* CaseObject::Find(std::string_view key) {
  read_.emplace(key);
  const auto value = node_->find(key);
  return value == node_->end() || value->is_null() ? nullptr : &*value;
}

bool CaseObject::Has(std::string_view key) { return Find(key) != nullptr; }

const nlohmann::json* CaseObject::Require(std::string_view key) {
  const nlohmann::json* const value = Find(key);
  if (value == nullptr) FailText(reason::kMissingField, key, "is missing; give it a value");
  return value;
}

std::optional<std::int64_t> CaseObject::MaybeInt(std::string_view key, CaseRange range) {
  const nlohmann::json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> number = IntIn(*value, range);
  if (!number.has_value()) {
    Fail(reason::kValueOutOfRange, key, *value,
         absl::StrFormat("is no whole number from %d to %d", range.min, range.max));
  }
  return number.value_or(range.min);
}

std::int64_t CaseObject::IntOr(std::string_view key, CaseRange range, std::int64_t fallback) {
  return MaybeInt(key, range).value_or(fallback);
}

std::int64_t CaseObject::Int(std::string_view key, CaseRange range) {
  if (Require(key) == nullptr) return range.min;
  return IntOr(key, range, range.min);
}

bool CaseObject::BoolOr(std::string_view key, bool fallback) {
  const nlohmann::json* const value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    Fail(reason::kUnknownValue, key, *value, "is neither true nor false");
    return fallback;
  }
  return value->get<bool>();
}

std::optional<std::string> CaseObject::MaybeText(std::string_view key) {
  const nlohmann::json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    Fail(reason::kUnknownValue, key, *value, "is no string");
    return std::nullopt;
  }
  return value->get<std::string>();
}

void CaseObject::Fail(std::string_view why, std::string_view key, const nlohmann::json& value,
                      std::string_view fix) {
  FailText(why, key, absl::StrFormat("%s %s", ShownValue(value), fix));
}

void CaseObject::FailText(std::string_view why, std::string_view key, std::string message) {
  if (error_->ok()) *error_ = FieldError(why, PathOf(key), std::move(message));
}

void CaseObject::RefuseUnread() {
  for (const auto& [key, value] : node_->items()) {
    if (read_.count(key) > 0) continue;
    Fail(reason::kUnknownValue, key.substr(0, 64), value,
         "belongs to no field that the engine reads; remove it or correct its name");
    return;
  }
}

std::optional<std::int64_t> IntIn(const nlohmann::json& value, CaseRange range) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  const auto number = value.get<std::int64_t>();
  if (number < range.min || number > range.max) return std::nullopt;
  return number;
}

std::string ShownValue(const nlohmann::json& value) {
  if (value.is_structured()) return absl::StrFormat("%s of %d items", value.type_name(), value.size());
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  if (text.size() > 64) text = text.substr(0, 61) + "...";
  return text;
}

}  // namespace kvasir
