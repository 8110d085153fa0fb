#include "planner/request/launch_yaml.h"

#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/request/launch_sections.h"

namespace kvasir {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kBytesMax = 1 << 20;
constexpr int kNodesMax = 10000;
constexpr int kDepthMax = 32;

absl::Status Bad(std::string_view name, std::string_view why) {
  return FieldError(
      reason::kMalformedMessage, "--config",
      absl::StrFormat("--config %s: %s; write one flag a line, like tensor-parallel-size: 8", name, why));
}

// The truth words of YAML 1.1, which the engine's loader follows.
std::optional<bool> Truth(const std::string& word) {
  constexpr std::array kTrue = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
  constexpr std::array kFalse = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
  for (const std::string_view one : kTrue) {
    if (word == one) return true;
  }
  for (const std::string_view one : kFalse) {
    if (word == one) return false;
  }
  return std::nullopt;
}

Json Scalar(const YAML::Node& node) {
  const std::string& word = node.Scalar();
  if (node.Tag() == "!") return word;  // quoted
  if (const std::optional<bool> truth = Truth(word)) return *truth;
  if (word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL") return nullptr;
  std::int64_t whole = 0;
  const char* const end = word.data() + word.size();
  if (const auto read = std::from_chars(word.data(), end, whole); read.ec == std::errc() && read.ptr == end) {
    return whole;
  }
  double real = 0;
  const auto read = std::from_chars(word.data(), end, real);
  const bool number = word.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (number && read.ec == std::errc() && read.ptr == end) return real;
  return word;
}

class Converter {
 public:
  // nullopt beyond the limits.
  std::optional<Json> Convert(const YAML::Node& node, int depth) {
    if (++nodes_ > kNodesMax || depth > kDepthMax) return std::nullopt;
    if (node.IsScalar()) return Scalar(node);
    if (node.IsSequence()) {
      Json list = Json::array();
      for (const YAML::Node& one : node) {
        std::optional<Json> value = Convert(one, depth + 1);
        if (!value.has_value()) return std::nullopt;
        list.push_back(*std::move(value));
      }
      return list;
    }
    if (node.IsMap()) {
      Json map = Json::object();
      for (const auto& entry : node) {
        std::optional<Json> value = Convert(entry.second, depth + 1);
        if (!value.has_value() || !entry.first.IsScalar()) return std::nullopt;
        map[entry.first.Scalar()] = *std::move(value);
      }
      return map;
    }
    return Json(nullptr);
  }

 private:
  int nodes_ = 0;
};

void AppendWords(const std::string& key, const Json& value, std::vector<std::string>& words) {
  if (value.is_null()) return;
  if (value.is_boolean()) {
    words.push_back((value.get<bool>() ? "--" : "--no-") + key);
    return;
  }
  if (value.is_array() && value.empty()) return;
  words.push_back("--" + key);
  for (const std::string& word : JsonWords(value)) words.push_back(word);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WordsOfYaml(std::string_view name, std::string_view text) {
  if (text.size() > kBytesMax)
    return Bad(name, absl::StrFormat("%d bytes, at most %d are read", text.size(), kBytesMax));
  std::optional<Json> document;
  // The library reports by exceptions; none leaves this function.
  try {
    document = Converter().Convert(YAML::Load(std::string(text)), 0);
  } catch (const std::exception& error) {
    return Bad(name, absl::StrFormat("not valid YAML (%s)", error.what()));
  }
  if (!document.has_value()) return Bad(name, "nested too deeply, too many values, or a key that is no word");
  std::vector<std::string> words;
  if (document->is_null()) return words;
  if (!document->is_object()) return Bad(name, "not a map of flags");
  for (const auto& [key, value] : document->items()) AppendWords(key, value, words);
  return words;
}

}  // namespace kvasir
