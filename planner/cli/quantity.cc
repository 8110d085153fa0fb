#include "planner/cli/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "planner/core/wide.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kDigitsMax = 18;
constexpr std::int64_t kKilo = 1024;
constexpr std::int64_t kMega = kKilo * kKilo;
constexpr std::size_t kListMax = 1024;

struct Unit {
  std::string_view name;  // lower case
  std::int64_t bytes;
};

constexpr std::array kUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"kib", std::int64_t{1} << 10},
    Unit{"mib", std::int64_t{1} << 20},
    Unit{"gib", std::int64_t{1} << 30},
    Unit{"tib", std::int64_t{1} << 40},
    Unit{"kb", 1000},
    Unit{"mb", 1000000},
    Unit{"gb", 1000000000},
    Unit{"tb", 1000000000000},
};

// A size out of the table, or 0.
std::int64_t UnitBytes(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (const Unit& unit : kUnits) {
    if (unit.name == lower) return unit.bytes;
  }
  return 0;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

absl::Status BadBytes(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrFormat("size \"%s\": %s; write it like 46.8GiB, 512MiB or 1000000", text, why));
}

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (parts.size() <= kListMax) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return parts;
}

// "131,072": one number as people write it, rather than a list of very short lengths.
bool IsGrouped(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text);
  const auto digits = [](std::string_view part) { return std::all_of(part.begin(), part.end(), IsDigit); };
  return parts.size() > 1 && !parts[0].empty() && parts[0].size() <= 3 && digits(parts[0]) &&
         std::all_of(parts.begin() + 1, parts.end(),
                     [&](std::string_view part) { return part.size() == 3 && digits(part); });
}

absl::StatusOr<std::int64_t> ParseTokens(std::string_view text) {
  if (text == "max") return 0;
  std::int64_t unit = 1;
  std::string_view digits = text;
  if (!digits.empty() && (digits.back() == 'k' || digits.back() == 'K')) unit = kKilo;
  if (!digits.empty() && (digits.back() == 'm' || digits.back() == 'M')) unit = kMega;
  if (unit > 1) digits.remove_suffix(1);
  const std::optional<std::int64_t> value = ParseInt(digits);
  const std::optional<std::int64_t> tokens = value.has_value() ? CheckedMul(*value, unit) : std::nullopt;
  if (!tokens.has_value() || *tokens < 1 || *tokens > kContextTokensMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("context \"%s\": expected tokens like 131072 or 128k, or max", text));
  }
  return *tokens;
}

}  // namespace

std::optional<std::int64_t> ParseInt(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::StatusOr<std::int64_t> ParseBytes(std::string_view text) {
  std::size_t at = 0;
  std::size_t digits = 0;
  Wide number = 0;  // the decimal without its point
  Wide scale = 1;   // ten to the number of decimals
  bool fraction = false;
  for (; at < text.size() && (IsDigit(text[at]) || (text[at] == '.' && !fraction)); ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    if (++digits > kDigitsMax) return BadBytes(text, "too many digits");
    number = number * 10 + (text[at] - '0');
    if (fraction) scale *= 10;
  }
  if (digits == 0) return BadBytes(text, "no number");
  if (fraction && scale == 1) return BadBytes(text, "no digit after the point");
  const std::int64_t unit = UnitBytes(text.substr(at));
  if (unit == 0) return BadBytes(text, absl::StrFormat("unknown unit \"%s\"", text.substr(at, 16)));
  const Wide bytes = number * unit / scale;  // below 2^100: 18 digits times 2^40
  if (bytes > std::numeric_limits<std::int64_t>::max()) return BadBytes(text, "too large");
  return static_cast<std::int64_t>(bytes);
}

absl::StatusOr<std::vector<std::int64_t>> ParseBytesList(std::string_view text) {
  std::vector<std::int64_t> out;
  for (const std::string_view part : Split(text)) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes, ParseBytes(part));
    out.push_back(bytes);
  }
  return out;
}

absl::StatusOr<std::vector<std::int64_t>> ParseContexts(std::string_view text) {
  if (IsGrouped(text)) {
    std::string digits(text);
    std::erase(digits, ',');
    return absl::InvalidArgumentError(absl::StrFormat(
        "context \"%s\": a comma separates lengths; for one of %s tokens write %s", text, text, digits));
  }
  std::vector<std::int64_t> out;
  for (const std::string_view part : Split(text)) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t tokens, ParseTokens(part));
    out.push_back(tokens);
  }
  return out;
}

absl::StatusOr<std::int64_t> ParsePercent(std::string_view text) {
  std::string_view number = text;
  if (!number.empty() && number.back() == '%') number.remove_suffix(1);
  while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
  const std::size_t point = number.find('.');
  const bool whole = point == std::string_view::npos;
  std::string digits(number.substr(0, point));
  const std::string decimals(whole ? "" : number.substr(point + 1));
  digits += (decimals + "00").substr(0, 2);
  const bool plain = std::all_of(digits.begin(), digits.end(), IsDigit) && (whole || !decimals.empty());
  const std::optional<std::int64_t> value = plain ? ParseInt(digits) : std::nullopt;
  if (digits.size() <= 2 || decimals.size() > 2 || !value.has_value() || *value > 10'000) {
    return absl::InvalidArgumentError(
        absl::StrFormat("percentage \"%s\": expected 0%% to 100%%, like 2%% or 0.25%%", text));
  }
  return *value;
}

std::string BytesText(std::int64_t bytes) {
  constexpr std::array kNames = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrFormat("%d B", bytes);
  std::size_t unit = 0;
  while (unit + 1 < kNames.size() && (bytes >> (10 * (unit + 2))) > 0) ++unit;
  const std::int64_t size = std::int64_t{1} << (10 * (unit + 1));
  const Wide hundredths = (Wide{bytes} * 100 + size / 2) / size;
  return absl::StrFormat("%s.%02d %s", Thousands(static_cast<std::int64_t>(hundredths / 100)),
                         static_cast<int>(hundredths % 100), kNames[unit]);
}

std::string Thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string TokensText(std::int64_t tokens) {
  if (tokens > 0 && tokens % kMega == 0) return absl::StrFormat("%dm", tokens / kMega);
  if (tokens > 0 && tokens % kKilo == 0) return absl::StrFormat("%dk", tokens / kKilo);
  return std::to_string(tokens);
}

std::string ChangeText(std::int64_t before, std::int64_t after) {
  if (before == after) return "±0.0 %";
  if (before == 0) return "new";
  const std::int64_t change = after - before;
  const Wide size = Wide{change < 0 ? -change : change} * 1000;
  const auto tenths = static_cast<std::int64_t>((size + before / 2) / before);
  return absl::StrFormat("%s%s.%d %%", change < 0 ? "-" : "+", Thousands(tenths / 10),
                         static_cast<int>(tenths % 10));
}

std::string PercentText(std::int64_t part, std::int64_t whole) {
  const std::int64_t tenths = (part * 1000 + whole / 2) / whole;
  return absl::StrFormat("%d.%d %%", tenths / 10, tenths % 10);
}

}  // namespace kvasir::cli
