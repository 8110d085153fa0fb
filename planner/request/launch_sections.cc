#include "planner/request/launch_sections.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/request/launch_values.h"

namespace kvasir {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kShownMax = 80;

absl::Status NotJson(std::string_view flag, std::string_view text, std::string_view why) {
  return FieldError(
      reason::kMalformedMessage, flag,
      absl::StrFormat("%s is not valid JSON (%s): %s; write it like '{\"key\": 1}', in single quotes", flag,
                      why, std::string(text.substr(0, kShownMax))));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordChar(char c) { return IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The end of a bare size that begins at `at`, or `at`.
std::size_t EndOfSize(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && (IsDigit(text[end]) || text[end] == '.')) ++end;
  const bool suffix =
      end < text.size() && std::string_view("kKmMgGtT").find(text[end]) != std::string_view::npos;
  const bool whole = suffix && (end + 1 == text.size() || !IsWordChar(text[end + 1]));
  return whole ? end + 1 : at;
}

// Text with the sizes that stand outside strings as plain numbers.
std::string WithPlainNumbers(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const bool begins = !quoted && IsDigit(c) && (i == 0 || !(IsWordChar(text[i - 1]) || text[i - 1] == '.'));
    const std::size_t end = begins ? EndOfSize(text, i) : i;
    if (end > i) {
      const absl::StatusOr<std::int64_t> size = ParseEngineSize(text.substr(i, end - i));
      out += size.ok() ? std::to_string(*size) : std::string(text.substr(i, end - i));
      i = end;
      continue;
    }
    if (c == '"') quoted = !quoted;
    if (c == '\\' && quoted && i + 1 < text.size()) out += text[i++];
    out += text[i++];
  }
  return out;
}

void Merge(Json& into, const Json& from, int depth) {
  if (!into.is_object() || !from.is_object() || depth > kLaunchJsonDepthMax) {
    into = from;
    return;
  }
  for (const auto& [key, value] : from.items()) {
    Json& mine = into[key];
    if (mine.is_array() && value.is_array()) {
      mine.insert(mine.end(), value.begin(), value.end());
    } else {
      Merge(mine, value, depth + 1);
    }
  }
}

Json ListOf(std::string_view text) {
  Json list = Json::array();
  while (true) {
    const std::size_t comma = text.find(',');
    list.push_back(std::string(text.substr(0, comma)));
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

// A word after a dotted flag: JSON, else a size, else text.
Json PartValue(std::string_view text) {
  absl::StatusOr<Json> json = ParseLaunchJson("", text);
  if (json.ok()) return *std::move(json);
  const absl::StatusOr<std::int64_t> size = ParseEngineSize(text);
  return size.ok() ? Json(*size) : Json(std::string(text));
}

}  // namespace

absl::StatusOr<Json> ParseLaunchJson(std::string_view flag, std::string_view text) {
  bool deep = false;
  const auto watch = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kLaunchJsonDepthMax;
    return depth <= kLaunchJsonDepthMax;
  };
  Json value = Json::parse(WithPlainNumbers(text), watch, /*allow_exceptions=*/false);
  if (deep) return NotJson(flag, text, absl::StrFormat("nested deeper than %d", kLaunchJsonDepthMax));
  if (value.is_discarded()) return NotJson(flag, text, "it does not parse");
  return value;
}

bool LaunchJsonAsks(std::string_view text, std::string_view key) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return false;
  const auto at = object.find(key);
  return at != object.end() && (*at == true || *at == "true" || *at == "True");
}

std::string JsonWord(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  // 7.0 is 7 where a whole number is asked for.
  if (value.is_number_float()) {
    const auto real = value.get<double>();
    if (real > -9e15 && real < 9e15 && real == static_cast<double>(static_cast<std::int64_t>(real))) {
      return std::to_string(static_cast<std::int64_t>(real));
    }
  }
  return value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

std::vector<std::string> JsonWords(const Json& value) {
  if (!value.is_array()) return {JsonWord(value)};
  std::vector<std::string> words;
  words.reserve(value.size());
  for (const Json& one : value) words.push_back(JsonWord(one));
  return words;
}

absl::Status LaunchSections::AddWhole(const std::string& section, std::string_view text) {
  KVASIR_ASSIGN_OR_RETURN(Json value, ParseLaunchJson("--" + section, text));
  sections_[section].whole.push_back(std::move(value));
  return absl::OkStatus();
}

absl::Status LaunchSections::AddPart(const std::string& section, const std::string& said,
                                     std::string_view path, std::string_view text) {
  const bool list = !path.empty() && path.back() == '+';
  if (list) path.remove_suffix(1);
  Json value = list ? ListOf(text) : PartValue(text);
  std::vector<std::string> keys;
  while (true) {
    const std::size_t dot = path.find('.');
    keys.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  if (keys.size() > static_cast<std::size_t>(kLaunchJsonDepthMax) || keys.front().empty()) {
    return FieldError(reason::kUnknownValue, "--" + section,
                      absl::StrFormat("--%s. is followed by no key; write --%s.key value", section, section));
  }
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) value = Json{{*key, std::move(value)}};
  auto& parts = sections_[section].parts;
  const auto mine =
      std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.first == said; });
  if (mine == parts.end()) {
    parts.emplace_back(said, std::move(value));
  } else {
    Merge(mine->second, value, 0);
  }
  return absl::OkStatus();
}

std::map<std::string, Json> LaunchSections::Values() const {
  std::map<std::string, Json> values;
  for (const auto& [name, section] : sections_) {
    values[name] = section.parts.empty() ? section.whole.back() : section.parts.back().second;
  }
  return values;
}

std::vector<std::string> LaunchSections::Notes() const {
  std::vector<std::string> notes;
  for (const auto& [name, section] : sections_) {
    if (section.parts.empty() && section.whole.size() > 1) {
      notes.push_back(absl::StrFormat("--%s is given twice; the last counts", name));
    }
    if (!section.parts.empty() && !section.whole.empty()) {
      notes.push_back(
          absl::StrFormat("--%s with a whole value does not count: the engine replaces it by what is "
                          "said as %s.key",
                          name, section.parts.back().first));
    }
    if (section.parts.size() > 1) {
      notes.push_back(
          absl::StrFormat("what is said as %s.key does not count: the engine replaces it by what is "
                          "said as %s.key",
                          section.parts.front().first, section.parts.back().first));
    }
  }
  return notes;
}

}  // namespace kvasir
