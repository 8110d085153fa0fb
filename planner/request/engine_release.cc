#include "planner/request/engine_release.h"

#include <array>
#include <cstddef>

namespace kvasir {
namespace {

struct Numbered {
  std::int32_t number;  // major * 10000 + minor * 100 + patch
  std::int32_t day;     // of the sources that it was cut from
};

// Ascending. A number that is not listed takes the day of the one before it; days of patch releases are those
// of the branch.
constexpr std::array kReleases = {
    Numbered{600, 20240905},  Numbered{700, 20250127},  Numbered{800, 20250318},  Numbered{900, 20250515},
    Numbered{1000, 20250724}, Numbered{1001, 20250818}, Numbered{1002, 20250913}, Numbered{1100, 20251002},
    Numbered{1101, 20251118}, Numbered{1200, 20251203}, Numbered{1300, 20251218}, Numbered{1400, 20260120},
    Numbered{1500, 20260129}, Numbered{1600, 20260213}, Numbered{1700, 20260307}, Numbered{1800, 20260320},
    Numbered{1900, 20260402}, Numbered{2000, 20260425}, Numbered{2001, 20260427}, Numbered{2002, 20260510},
    Numbered{2100, 20260515}, Numbered{2200, 20260601}, Numbered{2300, 20260615}, Numbered{2400, 20260628},
    Numbered{2500, 20260715}, Numbered{2600, 20260728}, Numbered{2700, 20260812}, Numbered{2800, 20260901},
    Numbered{2900, 20260920}, Numbered{3000, 20261010}, Numbered{3100, 20261101},
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The digits at `at` as a number, and how many they are; at most 8.
std::int32_t NumberAt(std::string_view text, std::size_t at, std::size_t& length) {
  std::int32_t value = 0;
  for (length = 0; length < 8 && at + length < text.size() && IsDigit(text[at + length]); ++length) {
    value = value * 10 + (text[at + length] - '0');
  }
  return value;
}

bool IsDay(std::int32_t day) {
  const std::int32_t month = day / 100 % 100;
  return day > 20200000 && day < 21000000 && month >= 1 && month <= 12 && day % 100 >= 1 && day % 100 <= 31;
}

// "20260424" or "2026-04-24" or "2026-04" anywhere.
std::optional<std::int32_t> FindDay(std::string_view text, bool with_months) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!IsDigit(text[at]) || (at > 0 && IsDigit(text[at - 1]))) continue;
    std::size_t length = 0;
    const std::int32_t number = NumberAt(text, at, length);
    if (length == 8 && IsDay(number)) return number;
    if (length != 4 || number < 2020 || number > 2100 || at + 4 >= text.size() || text[at + 4] != '-')
      continue;
    std::size_t digits = 0;
    const std::int32_t month = NumberAt(text, at + 5, digits);
    if (digits != 2 || month < 1 || month > 12) continue;
    const std::size_t after = at + 7;
    std::int32_t day = 0;
    if (after < text.size() && text[after] == '-') day = NumberAt(text, after + 1, digits);
    if (day == 0 && !with_months) continue;
    const std::int32_t whole = number * 10000 + month * 100 + (day == 0 ? 15 : day);
    if (IsDay(whole)) return whole;
  }
  return std::nullopt;
}

// The first "a.b" or "a.b.c" of the text.
std::optional<std::int32_t> FindNumber(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!IsDigit(text[at]) || (at > 0 && (IsDigit(text[at - 1]) || text[at - 1] == '.'))) continue;
    std::array<std::int32_t, 3> parts = {};
    std::size_t count = 0;
    std::size_t place = at;
    while (count < parts.size()) {
      std::size_t length = 0;
      const std::int32_t value = NumberAt(text, place, length);
      if (length == 0 || length > 2) break;
      parts[count++] = value;
      place += length;
      if (place >= text.size() || text[place] != '.') break;
      ++place;
    }
    if (count >= 2) return parts[0] * 10000 + parts[1] * 100 + parts[2];
  }
  return std::nullopt;
}

}  // namespace

EngineRelease ReleaseOf(vllm::EngineVersion version) {
  return {version == vllm::EngineVersion::k2026_08 ? 20260820 : 20261101};
}

std::optional<EngineRelease> ParseEngineRelease(std::string_view text) {
  if (const std::optional<std::int32_t> day = FindDay(text, /*with_months=*/false))
    return EngineRelease{*day};
  if (const std::optional<std::int32_t> number = FindNumber(text)) {
    std::optional<EngineRelease> release;
    for (const Numbered& known : kReleases) {
      if (known.number <= *number) release = EngineRelease{known.day};
    }
    return release;
  }
  return ParseEngineDay(text);
}

std::optional<EngineRelease> ParseEngineDay(std::string_view text) {
  const std::optional<std::int32_t> day = FindDay(text, /*with_months=*/true);
  if (!day.has_value()) return std::nullopt;
  return EngineRelease{*day};
}

}  // namespace kvasir
