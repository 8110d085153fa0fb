#include "planner/request/launch_text.h"

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "planner/request/launch_flags.h"
#include "planner/request/launch_sections.h"
#include "planner/request/launch_values.h"

namespace kvasir {
namespace {

using Words = std::vector<std::string>;
using Json = nlohmann::ordered_json;

bool IsVariable(const FlagRow& row) { return row.name.front() >= 'A' && row.name.front() <= 'Z'; }

Json JsonOf(const FlagRow& row, const std::string& word) {
  switch (row.form) {
    case ValueForm::kSwitch:
      return word == "true";
    case ValueForm::kInt:
    case ValueForm::kSize:
    case ValueForm::kReal:
    case ValueForm::kJson:
      return Json::parse(word, nullptr, /*allow_exceptions=*/false);
    default:
      return word;
  }
}

std::string Joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

void AppendFlag(const FlagRow& row, const Words& values, Words& words) {
  const std::string flag(row.name);
  if (row.form == ValueForm::kSwitch) {
    words.push_back((values[0] == "true" ? "--" : "--no-") + flag);
    return;
  }
  const bool fit = row.form == ValueForm::kSizeOrAuto && values[0] == std::to_string(kFitMaxModelLen);
  if (!fit && values.size() == 1 && values[0].substr(0, 1) == "-") {
    words.push_back("--" + flag + "=" + values[0]);
    return;
  }
  words.push_back("--" + flag);
  if (fit) {
    words.emplace_back("auto");
  } else {
    words.insert(words.end(), values.begin(), values.end());
  }
}

}  // namespace

std::vector<std::string> LaunchWords(const LaunchOptions& options) {
  Words words;
  for (const FlagRow& row : CacheFlags()) {
    const std::optional<Words> values = LaunchValueWords(row, options);
    if (values.has_value() && row.emitted.empty() && IsVariable(row)) {
      const bool truth = row.form == ValueForm::kSwitch;
      words.push_back(std::string(row.name) + "=" +
                      (truth ? (values->front() == "true" ? "1" : "0") : Joined(*values)));
    }
  }
  words.insert(words.end(), {"vllm", "serve"});
  if (options.model.has_value()) words.push_back(*options.model);
  std::string open;  // the section whose keys are being collected
  Json section;
  const auto close = [&] {
    if (!open.empty())
      words.insert(words.end(), {"--" + open, section.dump(-1, ' ', true, Json::error_handler_t::replace)});
    open.clear();
    section = Json::object();
  };
  for (const FlagRow& row : CacheFlags()) {
    const std::optional<Words> values = LaunchValueWords(row, options);
    if (!values.has_value() || !row.emitted.empty() || IsVariable(row) || row.name == "model") continue;
    const std::size_t dot = row.name.find('.');
    const std::string name(row.name.substr(0, dot));
    if (dot == std::string_view::npos || name != open) close();
    if (dot == std::string_view::npos) {
      AppendFlag(row, *values, words);
    } else {
      open = name;
      section[std::string(row.name.substr(dot + 1))] = JsonOf(row, values->front());
    }
  }
  close();
  return words;
}

}  // namespace kvasir
