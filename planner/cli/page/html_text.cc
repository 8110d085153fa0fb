#include "planner/cli/page/html_text.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_format.h"
#include "planner/cli/quantity.h"
#include "planner/core/wide.h"

namespace kvasir::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Bytes of the character that `text` begins with: 1 to 4; 0 where it begins with none.
std::size_t CharacterBytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  if (!std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(size), IsContinuation))
    return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || beyond ? 0 : size;
}

std::string_view Entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = CharacterBytes(text);
    const std::string_view entity = Entity(text.front());
    out += !entity.empty() ? entity : size == 0 ? kReplacement : text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string EscapedScript(std::string_view json) {
  std::string out;
  for (const char c : json) {
    // Outside of strings JSON has none of these.
    if (c == '<' || c == '>' || c == '&') {
      out += absl::StrFormat("\\u%04x", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

Slot Text(std::string_view name, std::string_view text) { return {name, Escaped(text)}; }
Slot Markup(std::string_view name, std::string_view markup) { return {name, std::string(markup)}; }

std::string Filled(std::string_view form, std::initializer_list<Slot> slots) {
  std::string out;
  while (true) {
    const std::size_t open = form.find("{{");
    const std::size_t close = open == std::string_view::npos ? open : form.find("}}", open);
    if (close == std::string_view::npos) return out += form;
    const std::string_view name = form.substr(open + 2, close - open - 2);
    const Slot* slot =
        std::find_if(slots.begin(), slots.end(), [&](const Slot& s) { return s.name == name; });
    out += form.substr(0, open);
    out += slot == slots.end() ? form.substr(open, close + 2 - open) : std::string_view(slot->markup);
    form.remove_prefix(close + 2);
  }
}

std::string Share(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return "0%";
  const auto millionths = static_cast<std::int64_t>(Wide{part} * 1'000'000 / whole);
  return absl::StrFormat("%d.%04d%%", millionths / 10'000, millionths % 10'000);
}

std::string Counted(std::int64_t count, std::string_view noun) {
  return absl::StrFormat("%s %s%s", Thousands(count), noun, count == 1 ? "" : "s");
}

}  // namespace kvasir::cli
