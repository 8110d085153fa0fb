// Each field against its limits, for check_model.cc.
#ifndef KVASIR_COMMON_MODELS_MODEL_LIMITS_H_
#define KVASIR_COMMON_MODELS_MODEL_LIMITS_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/models/check_model.h"
#include "common/models/config_error.h"
#include "common/models/model_fields.h"

namespace kvasir {

inline constexpr std::string_view kModelNameFix = "expected 1 to 256 letters, digits or ._/+:@-";

// Keeps the first fault and stays silent after it.
class FaultKeeper {
 public:
  void Range(std::string field, std::int64_t value, std::int64_t min, std::int64_t max) {
    if (value >= min && value <= max) return;
    Report(ConfigFault::kOutOfLimit, std::move(field), absl::StrFormat("%d", value),
           absl::StrFormat("expected an integer from %d to %d", min, max));
  }

  void Real(std::string field, double value, double min, double max) {
    const bool negative_zero = value == 0 && std::signbit(value);  // it would not survive the text
    if (std::isfinite(value) && value >= min && value <= max && !negative_zero) return;
    Report(ConfigFault::kOutOfLimit, std::move(field), absl::StrFormat("%g", value),
           absl::StrFormat("expected a number from %g to %g", min, max));
  }

  void Require(bool holds, std::string field, std::int64_t value, std::string fix) {
    if (!holds) {
      Report(ConfigFault::kContradiction, std::move(field), absl::StrFormat("%d", value), std::move(fix));
    }
  }

  void Report(ConfigFault fault, std::string field, std::string value, std::string fix) {
    if (!error_.has_value()) error_ = ConfigError{fault, std::move(field), std::move(value), std::move(fix)};
  }

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  [[nodiscard]] std::optional<ConfigError> Take() { return std::move(error_); }

 private:
  std::optional<ConfigError> error_;
};

// Walks a shape's fields (model_fields.h) and checks each against its limits.
class LimitWalker {
 public:
  LimitWalker(FaultKeeper& check, const std::string& where) : check_(check), where_(where) {}

  void Int(std::string_view name, std::int64_t value, IntRange range) {
    check_.Range(Field(name), value, range.min, range.max);
  }
  void Real(std::string_view name, double value, RealRange range) {
    check_.Real(Field(name), value, range.min, range.max);
  }
  void Bool(std::string_view, bool) {}
  void Text(std::string_view name, const std::string& value) {
    if (IsModelName(value)) return;
    check_.Report(ConfigFault::kOutOfLimit, Field(name), value, std::string(kModelNameFix));
  }
  void Auto(std::string_view, const std::optional<DType>&) {}
  void Layer(std::string_view, const std::optional<std::int32_t>&) {}
  void Layers(std::string_view name, const std::vector<std::int64_t>& layers) {
    check_.Range(Field(name), static_cast<std::int64_t>(layers.size()), 0, kLayersMax);
  }
  void Format(std::string_view name, const WeightFormat& format) {
    check_.Range(Field(name) + " bits", format.bits, 0, 32);
    check_.Range(Field(name) + " group", format.group, 0, kDimMax);
    check_.Range(Field(name) + " scale bits", format.scale_bits, 0, 32);
  }
  template <typename E, typename Names>
  void Enum(std::string_view, E, const Names&) {}
  void IntUnless(std::string_view name, std::int64_t value, IntRange range, std::int64_t) {
    Int(name, value, range);
  }
  void RealUnless(std::string_view name, double value, RealRange range, double) { Real(name, value, range); }
  void BoolUnless(std::string_view, bool, bool) {}
  template <typename E, typename Names>
  void EnumUnless(std::string_view, E, const Names&, E) {}

 private:
  [[nodiscard]] std::string Field(std::string_view name) const { return where_ + std::string(name); }

  FaultKeeper& check_;
  const std::string& where_;  // "layer 3 "
};

template <typename Shape>
void CheckLimits(FaultKeeper& check, const std::string& where, const Shape& shape) {
  LimitWalker walker(check, where);
  model_fields::Walk(walker, shape);
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MODEL_LIMITS_H_
