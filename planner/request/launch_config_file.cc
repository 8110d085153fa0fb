#include "planner/request/launch_config_file.h"

#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/base/utf8.h"
#include "planner/request/launch_yaml.h"

namespace kvasir {

using Words = std::vector<std::string>;

bool IsFlagValue(std::string_view word) {
  return word.empty() || word.front() != '-' || word.size() == 1 ||
         word.find_first_not_of("0123456789.", 1) == std::string_view::npos;
}

absl::Status TakeConfigFile(const ReadLaunchFile& read_file, bool positional_model,
                            std::vector<std::string>& words) {
  std::optional<std::string> path;
  Words rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool inline_value = word.substr(0, 9) == "--config=";
    if (word != "--config" && !inline_value) {
      rest.push_back(word);
      continue;
    }
    if (path.has_value()) {
      return FieldError(reason::kDuplicateItem, "--config", "--config is given twice; the engine reads one");
    }
    if (!inline_value && i + 1 == words.size()) {
      return FieldError(reason::kMissingField, "--config", "--config has no value; give a file after it");
    }
    path = inline_value ? word.substr(9) : words[++i];
  }
  words = std::move(rest);
  if (!path.has_value()) return absl::OkStatus();
  if (!read_file) {
    return FieldError(reason::kUnknownValue, "--config",
                      "--config cannot be read here; give its flags in the command instead");
  }
  const absl::StatusOr<std::string> text = read_file(*path);
  if (!text.ok()) {
    return FieldError(reason::kUnknownValue, "--config",
                      absl::StrFormat("--config %s: %s", *path, std::string(text.status().message())));
  }
  if (!IsUtf8(*text)) {
    return FieldError(reason::kMalformedMessage, "--config",
                      absl::StrFormat("--config %s is not UTF-8 text", *path));
  }
  KVASIR_ASSIGN_OR_RETURN(Words from_file, WordsOfYaml(*path, *text));
  const std::size_t first = positional_model && !words.empty() && IsFlagValue(words.front()) ? 1 : 0;
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(first), std::make_move_iterator(from_file.begin()),
               std::make_move_iterator(from_file.end()));
  return absl::OkStatus();
}

}  // namespace kvasir
