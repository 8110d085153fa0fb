#include "planner/request/launch_command.h"

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/base/utf8.h"
#include "planner/request/launch_config_file.h"
#include "planner/request/launch_flags.h"
#include "planner/request/launch_head.h"
#include "planner/request/launch_sections.h"
#include "planner/request/launch_split.h"
#include "planner/request/launch_values.h"

namespace kvasir {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kShownMax = 80;
constexpr std::size_t kSuggestedMax = 32;  // unknown flags that get a suggestion
constexpr std::size_t kCompletedMin = 4;   // characters of a name that may be completed

// "--max_model_len" -> "max-model-len"; what follows a dot keeps its underscores.
std::string NameOf(std::string_view word) {
  std::string name(word.substr(2));
  for (std::size_t i = 0; i < name.size() && name[i] != '.'; ++i) {
    if (name[i] == '_') name[i] = '-';
  }
  return name;
}

Words SplitCommas(const Words& words) {
  Words out;
  for (const std::string& word : words) {
    std::size_t at = 0;
    while (true) {
      const std::size_t comma = word.find(',', at);
      if (comma != at && at < word.size()) out.push_back(word.substr(at, comma - at));
      if (comma == std::string::npos) break;
      at = comma + 1;
    }
  }
  return out;
}

class CommandReader {
 public:
  CommandReader(LaunchHead head, const ReadLaunchFile& read_file)
      : head_(std::move(head)), read_file_(read_file), words_(std::move(head_.rest)) {
    command_.notes = std::move(head_.notes);
  }

  absl::StatusOr<LaunchCommand> Read() {
    for (const auto& [name, value] : head_.variables) KVASIR_RETURN_IF_ERROR(Variable(name, value));
    if (head_.optimized_python) command_.options.optimized_python = true;
    KVASIR_RETURN_IF_ERROR(TakeConfigFile(read_file_, head_.positional_model, words_));
    while (at_ < words_.size()) KVASIR_RETURN_IF_ERROR(Next());
    KVASIR_RETURN_IF_ERROR(ReadSections());
    if (!command_.options.model.has_value()) {
      return FieldError(reason::kMissingField, "model",
                        "no model; write it after \"vllm serve\", or give --model");
    }
    return std::move(command_);
  }

 private:
  absl::Status Variable(const std::string& name, const std::string& value) {
    const std::optional<FlagRow> row = FindFlag(name);
    if (!row.has_value() || !row->about_cache()) {
      const bool ours = name.substr(0, 5) == "VLLM_";
      if (ours && !row.has_value()) {
        command_.unknown.push_back({name + "=" + value.substr(0, kShownMax), Nearest(name)});
      } else {
        command_.not_about_cache.push_back(name + "=" + value);
      }
      return absl::OkStatus();
    }
    if (row->form == ValueForm::kSwitch) {
      return Set(*row, name, {value.empty() || value == "0" || value == "false" ? "false" : "true"});
    }
    return Set(*row, name, {value});
  }

  absl::Status Next() {
    const std::string word = words_[at_++];
    if (word.size() > 2 && word.substr(0, 2) == "--") return LongFlag(word);
    if (word.size() > 1 && word.front() == '-' && !IsFlagValue(word)) return ShortFlag(word);
    if (head_.positional_model && !positional_) {
      positional_ = true;
      return Set(*FindFlag("model"), "MODEL", {word});
    }
    return FieldError(
        reason::kUnknownValue, "command",
        absl::StrFormat("\"%s\" is neither a flag nor a flag's value; if it belongs to the flag "
                        "before it, that flag takes no value",
                        word.substr(0, kShownMax)));
  }

  absl::Status LongFlag(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = NameOf(word.substr(0, equals));
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    const std::size_t dot = name.find('.');
    const std::string flag = name.substr(0, dot);
    std::optional<FlagRow> row = FindFlag(flag);
    if (!row.has_value() && flag.substr(0, 3) == "no-") {
      row = FindFlag(flag.substr(3));
      if (row.has_value() && row->form == ValueForm::kSwitch && !value.has_value()) {
        return Known(*row, word, Words{"false"});
      }
      row.reset();
    }
    if (!row.has_value()) row = Completed(flag);
    if (!row.has_value()) return Unknown(word, flag);
    if (dot != std::string::npos) return Part(*row, word, name.substr(dot + 1), value);
    return Flag(*row, word, value);
  }

  absl::Status ShortFlag(const std::string& word) {
    if (word.substr(0, 2) == "-O") {  // the optimisation level: -O3, -O 3
      const bool next = word.size() == 2 && at_ < words_.size() && IsFlagValue(words_[at_]);
      command_.not_about_cache.push_back(next ? word + " " + words_[at_++] : word);
      return absl::OkStatus();
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(1, equals == std::string::npos ? equals : equals - 1);
    const std::size_t dot = name.find('.');
    const std::optional<FlagRow> row = FindShortFlag(name.substr(0, dot));
    if (!row.has_value()) return Unknown(word, name);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    if (dot != std::string::npos) return Part(*row, word, name.substr(dot + 1), value);
    return Flag(*row, word, value);
  }

  // A name that begins exactly one flag, as the engine completes it.
  std::optional<FlagRow> Completed(const std::string& name) {
    if (name.size() < kCompletedMin) return std::nullopt;
    const std::vector<FlagRow> rows = FlagsThatBegin(name);
    if (rows.size() != 1) return std::nullopt;
    command_.notes.push_back(absl::StrFormat("--%s is read as --%s", name, std::string(rows.front().name)));
    return rows.front();
  }

  absl::Status Flag(const FlagRow& row, const std::string& word, const std::optional<std::string>& value) {
    const std::string said = word.substr(0, word.find('='));
    if (row.form == ValueForm::kSwitch) {
      if (value.has_value()) {
        return FieldError(
            reason::kUnknownValue, said,
            absl::StrFormat("%s takes no value; write %s or --no-%s", said, said, std::string(row.name)));
      }
      return Known(row, said, {"true"});
    }
    Words values;
    if (value.has_value()) {
      values = {*value};
    } else if (row.form == ValueForm::kTexts || row.form == ValueForm::kInts) {
      while (at_ < words_.size() && IsFlagValue(words_[at_])) values.push_back(words_[at_++]);
    } else if (at_ < words_.size() && IsFlagValue(words_[at_])) {
      values = {words_[at_++]};
    }
    return Known(row, said, std::move(values));
  }

  // --section.key value.
  absl::Status Part(const FlagRow& row, const std::string& word, const std::string& path,
                    const std::optional<std::string>& value) {
    if (row.form != ValueForm::kSection && row.form != ValueForm::kJson)
      return Unknown(word, NameOf("--" + path));
    if (!value.has_value() && at_ == words_.size()) {
      return FieldError(reason::kMissingField, word,
                        absl::StrFormat("%s has no value; give one after it", word));
    }
    const std::string text = value.has_value() ? *value : words_[at_++];
    if (!row.about_cache()) {
      command_.not_about_cache.push_back(word.substr(0, word.find('=')) + " " + text);
      return absl::OkStatus();
    }
    const std::string head = word.substr(0, word.find('.'));
    return sections_.AddPart(std::string(row.name), head[1] == '-' ? "--" + NameOf(head) : head, path, text);
  }

  absl::Status Known(const FlagRow& row, const std::string& said, Words values) {
    if (row.form == ValueForm::kSection || row.form == ValueForm::kJson) {
      if (values.empty())
        return SetLaunchValue(row, said, values, command_.options);  // says that it is missing
      if (row.about_cache()) return sections_.AddWhole(std::string(row.name), values.front());
      KVASIR_RETURN_IF_ERROR(ParseLaunchJson(said, values.front()).status());
    }
    if (!row.about_cache()) {
      KVASIR_RETURN_IF_ERROR(SetLaunchValue(row, said, values, command_.options));
      std::string text = said;
      if (row.form != ValueForm::kSwitch) {
        for (const std::string& value : values) text += " " + value;
      }
      command_.not_about_cache.push_back(std::move(text));
      return absl::OkStatus();
    }
    return Set(row, said, values);
  }

  absl::Status Set(const FlagRow& row, const std::string& said, Words values) {
    const std::string field(row.emitted.empty() ? row.name : row.emitted);
    const auto [before, first] = set_by_.try_emplace(field, std::string(row.name), said);
    if (!first) {
      const auto& [name, spelled] = before->second;
      const bool variable = name.front() >= 'A' && name.front() <= 'Z';
      if (name != row.name && !variable) {
        return FieldError(reason::kConflictingFields, said,
                          absl::StrFormat("%s and %s set the same thing; keep one", spelled, said));
      }
      command_.notes.push_back(absl::StrFormat("%s is given twice; the last counts", spelled));
      before->second = {std::string(row.name), said};
    }
    if (row.form == ValueForm::kInts) values = SplitCommas(values);
    return SetLaunchValue(row, said, values, command_.options);
  }

  // Of the first few unknown words; comparing is slow, and who has more of them pasted something else.
  [[nodiscard]] std::string Nearest(const std::string& name) const {
    return command_.unknown.size() < kSuggestedMax ? NearestFlag(name) : std::string();
  }

  absl::Status Unknown(const std::string& word, const std::string& name) {
    std::string text = word;
    if (word.find('=') == std::string::npos && at_ < words_.size() && IsFlagValue(words_[at_])) {
      text += " " + words_[at_++];
    }
    command_.unknown.push_back({std::move(text), Nearest(name)});
    return absl::OkStatus();
  }

  absl::Status ReadSections() {
    for (std::string& note : sections_.Notes()) command_.notes.push_back(std::move(note));
    for (const auto& [section, value] : sections_.Values()) {
      const std::optional<FlagRow> row = FindFlag(section);
      if (row.has_value() && row->form == ValueForm::kJson) {
        KVASIR_RETURN_IF_ERROR(SetJson(*row, "--" + section, value));
      } else if (value.is_object()) {
        KVASIR_RETURN_IF_ERROR(ReadSection(section, value));
      } else {
        command_.not_about_cache.push_back("--" + section + " " + JsonWord(value));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadSection(const std::string& section, const nlohmann::json& object) {
    for (const auto& [key, value] : object.items()) {
      std::string name = absl::StrFormat("%s.%s", section, key);
      for (char& c : name) {
        if (c == '-' && &c > name.data() + section.size()) c = '_';  // the engine takes both
      }
      const std::optional<FlagRow> row = FindFlag(name);
      if (!row.has_value()) {
        command_.unknown.push_back(
            {absl::StrFormat("--%s.%s %s", section, key, JsonWord(value)), Nearest(name)});
      } else if (!row->about_cache()) {
        command_.not_about_cache.push_back(absl::StrFormat("--%s.%s %s", section, key, JsonWord(value)));
      } else if (!value.is_null()) {
        const std::string said = absl::StrFormat("--%s.%s", section, key);
        const bool json = row->form == ValueForm::kJson;
        KVASIR_RETURN_IF_ERROR(json ? SetJson(*row, said, value) : Set(*row, said, JsonWords(value)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status SetJson(const FlagRow& row, const std::string& said, const nlohmann::json& value) {
    if (!value.is_object()) {
      return FieldError(
          reason::kUnknownValue, said,
          absl::StrFormat("%s is %s; give a JSON object", said, JsonWord(value).substr(0, kShownMax)));
    }
    return Set(row, said, {JsonWord(value)});
  }

  LaunchHead head_;
  const ReadLaunchFile& read_file_;
  Words words_;
  std::size_t at_ = 0;
  bool positional_ = false;
  std::map<std::string, std::pair<std::string, std::string>> set_by_;  // field -> row, spelling
  LaunchSections sections_;
  LaunchCommand command_;
};

}  // namespace

absl::StatusOr<LaunchCommand> ParseLaunchCommand(std::span<const std::string> words,
                                                 const ReadLaunchFile& read_file) {
  std::size_t bytes = 0;
  for (const std::string& word : words) bytes += word.size();
  if (words.size() > kLaunchWordsMax || bytes > kLaunchBytesMax) {
    return FieldError(reason::kTooManyItems, "command",
                      absl::StrFormat("%d words of %d bytes; at most %d words of %d bytes are read",
                                      words.size(), bytes, kLaunchWordsMax, kLaunchBytesMax));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!IsUtf8(words[i])) {
      return FieldError(reason::kMalformedMessage, "command",
                        absl::StrFormat("word %d is not UTF-8 text; paste the command as text", i + 1));
    }
  }
  Words split;
  if (words.size() == 1 && words[0].find(' ') != std::string::npos) {
    KVASIR_ASSIGN_OR_RETURN(split, SplitCommand(words[0]));
    words = split;
  }
  KVASIR_ASSIGN_OR_RETURN(LaunchHead head, ReadLaunchHead(words));
  return CommandReader(std::move(head), read_file).Read();
}

}  // namespace kvasir
