#include "planner/request/launch_values.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr std::size_t kShownMax = 80;  // characters of a value in a message
constexpr std::size_t kListMax = 4096;

absl::Status Bad(std::string_view said, std::string_view value, const std::string& fix,
                 std::string_view reason = reason::kUnknownValue) {
  return FieldError(reason, said,
                    absl::StrFormat("%s is \"%s\"; %s", said, std::string(value.substr(0, kShownMax)), fix));
}

std::optional<std::int64_t> ParseWhole(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// The unit of a suffix, 0 for none; `binary` for a power of 1024.
std::int64_t UnitOf(char suffix, bool& binary) {
  constexpr std::string_view kDecimal = "kmgt";
  constexpr std::string_view kBinary = "KMGT";
  std::int64_t unit = 1;
  binary = kBinary.find(suffix) != std::string_view::npos;
  const std::size_t power = (binary ? kBinary : kDecimal).find(suffix);
  if (power == std::string_view::npos) return 0;
  for (std::size_t i = 0; i <= power; ++i) unit *= binary ? 1024 : 1000;
  return unit;
}

// digits.digits times a power of 1000, multiplied and cut as the engine does it, in doubles; nullopt beyond
// 64 bits or for another form.
std::optional<std::int64_t> ScaledDecimal(std::string_view digits, std::int64_t unit) {
  if (digits.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  if (digits.empty() || digits.front() == '.' || digits.back() == '.') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  value *= static_cast<double>(unit);
  if (value >= 9.2e18) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

bool InChoices(std::string_view choices, std::string_view word) {
  while (!choices.empty()) {
    const std::size_t end = choices.find(' ');
    if (choices.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    choices.remove_prefix(end + 1);
  }
  return false;
}

std::optional<bool> ParseTruth(std::string_view word) {
  if (word == "true" || word == "True" || word == "1") return true;
  if (word == "false" || word == "False" || word == "0") return false;
  return std::nullopt;
}

absl::StatusOr<std::int64_t> ReadInt(const FlagRow& row, std::string_view said, std::string_view word) {
  if (row.form == ValueForm::kSizeOrAuto &&
      (word == "auto" || word == "Auto" || word == "AUTO" || word == "-1")) {
    return kFitMaxModelLen;
  }
  std::int64_t value = 0;
  if (row.form == ValueForm::kSize || row.form == ValueForm::kSizeOrAuto) {
    const absl::StatusOr<std::int64_t> size = ParseEngineSize(word);
    if (!size.ok()) return Bad(said, word, std::string(size.status().message()));
    value = *size;
  } else {
    const std::optional<std::int64_t> whole = ParseWhole(word);
    if (!whole.has_value()) return Bad(said, word, "give a whole number");
    value = *whole;
  }
  if (row.max != 0 && (value < row.min || value > row.max)) {
    return Bad(said, word, absl::StrFormat("give a value from %d to %d", row.min, row.max),
               reason::kValueOutOfRange);
  }
  return value;
}

absl::StatusOr<double> ReadReal(const FlagRow& row, std::string_view said, std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || word.empty() || !std::isfinite(value)) {
    return Bad(said, word, "give a number");
  }
  if (row.max != 0 && (value < static_cast<double>(row.min) || value > static_cast<double>(row.max))) {
    return Bad(said, word, absl::StrFormat("give a value from %d to %d", row.min, row.max),
               reason::kValueOutOfRange);
  }
  return value;
}

// Sets one member from its words.
struct Setter {
  const FlagRow& row;
  std::string_view said;
  const std::vector<std::string>& words;
  LaunchOptions& options;

  [[nodiscard]] const std::string& word() const { return words.front(); }

  absl::Status operator()(std::monostate) const {
    switch (row.form) {
      case ValueForm::kInt:
      case ValueForm::kSize:
        return ReadInt(row, said, word()).status();
      case ValueForm::kReal:
        return ReadReal(row, said, word()).status();
      default:
        return absl::OkStatus();
    }
  }
  absl::Status operator()(OptionalInt LaunchOptions::* field) const {
    KVASIR_ASSIGN_OR_RETURN(options.*field, ReadInt(row, said, word()));
    return absl::OkStatus();
  }
  absl::Status operator()(OptionalReal LaunchOptions::* field) const {
    KVASIR_ASSIGN_OR_RETURN(options.*field, ReadReal(row, said, word()));
    return absl::OkStatus();
  }
  absl::Status operator()(OptionalBool LaunchOptions::* field) const {
    const std::optional<bool> truth = ParseTruth(word());
    if (!truth.has_value()) return Bad(said, word(), "give true or false");
    options.*field = truth;
    return absl::OkStatus();
  }
  absl::Status operator()(OptionalText LaunchOptions::* field) const {
    if (word().empty()) return Bad(said, word(), "give a value");
    if (!row.choices.empty() && !InChoices(row.choices, word())) {
      return Bad(said, word(), "use one of " + std::string(row.choices));
    }
    options.*field = word();
    return absl::OkStatus();
  }
  absl::Status operator()(OptionalTexts LaunchOptions::* field) const {
    options.*field = words;
    return absl::OkStatus();
  }
  absl::Status operator()(OptionalInts LaunchOptions::* field) const {
    std::vector<std::int64_t> values;
    for (const std::string& one : words) {
      KVASIR_ASSIGN_OR_RETURN(const std::int64_t value, ReadInt(row, said, one));
      values.push_back(value);
    }
    options.*field = std::move(values);
    return absl::OkStatus();
  }
};

struct Clearer {
  LaunchOptions& options;
  void operator()(std::monostate) const {}
  template <class Field>
  void operator()(Field field) const {
    (options.*field).reset();
  }
};

std::string RealText(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}

struct Writer {
  const LaunchOptions& options;
  using Words = std::optional<std::vector<std::string>>;

  Words operator()(std::monostate) const { return std::nullopt; }
  Words operator()(OptionalInt LaunchOptions::* field) const {
    if (!(options.*field).has_value()) return std::nullopt;
    return {{std::to_string(*(options.*field))}};
  }
  Words operator()(OptionalReal LaunchOptions::* field) const {
    if (!(options.*field).has_value()) return std::nullopt;
    return {{RealText(*(options.*field))}};
  }
  Words operator()(OptionalBool LaunchOptions::* field) const {
    if (!(options.*field).has_value()) return std::nullopt;
    return {{*(options.*field) ? "true" : "false"}};
  }
  Words operator()(OptionalText LaunchOptions::* field) const {
    if (!(options.*field).has_value()) return std::nullopt;
    return {{*(options.*field)}};
  }
  Words operator()(OptionalTexts LaunchOptions::* field) const { return options.*field; }
  Words operator()(OptionalInts LaunchOptions::* field) const {
    if (!(options.*field).has_value()) return std::nullopt;
    std::vector<std::string> words;
    for (const std::int64_t value : *(options.*field)) words.push_back(std::to_string(value));
    return words;
  }
};

}  // namespace

absl::StatusOr<std::int64_t> ParseEngineSize(std::string_view text) {
  const std::string_view said = text;
  bool binary = false;
  const std::int64_t unit = text.empty() ? 0 : UnitOf(text.back(), binary);
  std::optional<std::int64_t> value;
  if (unit == 0) {
    value = ParseWhole(text);
  } else {
    text.remove_suffix(1);
    if (binary && text.find('.') != std::string_view::npos) {
      return absl::InvalidArgumentError(
          "a fraction goes with k, m, g, t (powers of 1000), not with K, M, G, T");
    }
    const std::optional<std::int64_t> whole = ParseWhole(text);
    if (whole.has_value() && *whole >= 0) {
      value = CheckedMul(*whole, unit);
    } else {
      value = ScaledDecimal(text, unit);
    }
  }
  if (!value.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected a number like 131072, 128k (128,000) or 128K (131,072), not \"%s\"",
                        std::string(said.substr(0, kShownMax))));
  }
  return *value;
}

absl::Status SetLaunchValue(const FlagRow& row, std::string_view said, const std::vector<std::string>& words,
                            LaunchOptions& options) {
  if (words.empty()) {
    if (row.form == ValueForm::kMaybeText) return absl::OkStatus();
    return FieldError(reason::kMissingField, said,
                      absl::StrFormat("%s has no value; give one after it", said));
  }
  if (words.size() > kListMax) {
    return FieldError(reason::kTooManyItems, said,
                      absl::StrFormat("%s has more than %d values", said, kListMax));
  }
  // The engine's word for "as if it were not said".
  if (words.size() == 1 && words[0] == "None" && row.form != ValueForm::kSwitch) {
    std::visit(Clearer{options}, row.field);
    return absl::OkStatus();
  }
  return std::visit(Setter{row, said, words, options}, row.field);
}

bool HasLaunchValue(const FlagRow& row, const LaunchOptions& options) {
  return LaunchValueWords(row, options).has_value();
}

std::optional<std::vector<std::string>> LaunchValueWords(const FlagRow& row, const LaunchOptions& options) {
  return std::visit(Writer{options}, row.field);
}

}  // namespace kvasir
