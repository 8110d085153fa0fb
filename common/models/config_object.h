// A typed view of one object of a parsed config.json. Every read names its field and its limits; the first
// fault of a document is kept and later reads return harmless stand-ins, so that an adapter reads straight
// down and asks once at the end.
#ifndef KVASIR_COMMON_MODELS_CONFIG_OBJECT_H_
#define KVASIR_COMMON_MODELS_CONFIG_OBJECT_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/limits.h"
#include "common/models/config_error.h"

namespace kvasir {

// Inclusive.
struct IntRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};
struct RealRange {
  double min = 0;
  double max = 0;
};

class ConfigObject {
 public:
  // `node` is an object and outlives the view, as does `error`. `path` is "" for the document or
  // "text_config.".
  ConfigObject(const nlohmann::json& node, std::string path, std::optional<ConfigError>& error)
      : node_(&node), path_(std::move(path)), error_(&error) {}

  // Present and not null.
  [[nodiscard]] bool Has(std::string_view field) const;

  // Required: a missing or null field is a fault; the stand-in is range.min (or 0, "", false, {}).
  [[nodiscard]] std::int64_t Int(std::string_view field, IntRange range) const;
  [[nodiscard]] double Real(std::string_view field, RealRange range) const;
  [[nodiscard]] std::string Text(std::string_view field) const;
  [[nodiscard]] std::vector<std::int64_t> IntList(std::string_view field, IntRange range) const;
  [[nodiscard]] std::vector<std::string> TextList(std::string_view field,
                                                  std::int64_t entries_max = kLayersMax) const;
  // nullopt, with the fault kept, unless the field is an object.
  [[nodiscard]] std::optional<ConfigObject> Object(std::string_view field) const;
  // A list of objects; entries of another type are faults.
  [[nodiscard]] std::vector<ConfigObject> Objects(std::string_view field) const;

  // Missing or null gives nullopt, without a fault.
  [[nodiscard]] std::optional<ConfigObject> ObjectIf(std::string_view field) const;
  // The fields of this object that are objects themselves, by name; the rest is passed over.
  [[nodiscard]] std::vector<std::pair<std::string, ConfigObject>> Members() const;
  // Present, and a list; present, and a string.
  [[nodiscard]] bool IsList(std::string_view field) const;
  [[nodiscard]] bool IsText(std::string_view field) const;
  // The first of `fields` that is present, else the first: families spell one thing in several ways.
  [[nodiscard]] std::string_view FirstOf(std::initializer_list<std::string_view> fields) const;

  // Missing or null gives the fallback; a wrong type or a value out of range is a fault all the same.
  [[nodiscard]] std::int64_t IntOr(std::string_view field, IntRange range, std::int64_t fallback) const;
  [[nodiscard]] double RealOr(std::string_view field, RealRange range, double fallback) const;
  [[nodiscard]] bool BoolOr(std::string_view field, bool fallback) const;
  [[nodiscard]] std::string TextOr(std::string_view field, std::string_view fallback) const;

  // Records a fault of `field`, unless an earlier one is kept already.
  void Fail(ConfigFault fault, std::string_view field, std::string fix) const;
  // The same, with the value given instead of looked up.
  void FailValue(ConfigFault fault, std::string_view field, std::string value, std::string fix) const;

  [[nodiscard]] bool ok() const { return !error_->has_value(); }

 private:
  [[nodiscard]] const nlohmann::json* Find(std::string_view field) const;
  [[nodiscard]] const nlohmann::json* Require(std::string_view field, std::string_view expected) const;
  [[nodiscard]] const nlohmann::json* RequireList(std::string_view field, std::string_view expected,
                                                  std::int64_t entries_max) const;
  [[nodiscard]] std::int64_t ToInt(const nlohmann::json& value, std::string_view field, IntRange range) const;

  const nlohmann::json* node_;
  std::string path_;
  std::optional<ConfigError>* error_;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_CONFIG_OBJECT_H_
