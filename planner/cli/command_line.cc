#include "planner/cli/command_line.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/edit_distance.h"
#include "common/base/status_macros.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {
namespace {

const Flag* FindFlag(std::span<const Flag> flags, std::string_view name) {
  for (const Flag& flag : flags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

// Words of other commands and of the engine, and ours for them.
struct Synonym {
  std::string_view said;
  std::string_view flag;
};
constexpr Synonym kSynonyms[] = {{"requests", "min-requests"},
                                 {"min-requests", "requests"},
                                 {"users", "min-requests"},
                                 {"users", "requests"},
                                 {"max-model-len", "context"},
                                 {"context-length", "context"},
                                 {"tensor-parallel-size", "tp"},
                                 {"decode-context-parallel-size", "dcp"},
                                 {"max-num-seqs", "max-requests"},
                                 {"num-speculative-tokens", "draft-tokens"},
                                 {"block-size", "block-tokens"},
                                 {"max-num-batched-tokens", "prefill-chunk"},
                                 {"attention-backend", "target-backend"},
                                 {"model", "target"}};

std::string MeantBy(std::span<const Flag> flags, std::string_view name) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.said == name && FindFlag(flags, synonym.flag) != nullptr) return std::string(synonym.flag);
  }
  std::vector<std::string> known;
  known.reserve(flags.size());
  for (const Flag& flag : flags) known.emplace_back(flag.name);
  return Nearest(name, known);
}

absl::Status UnknownFlag(std::span<const Flag> flags, std::string_view name) {
  const std::string near = MeantBy(flags, name);
  std::string message = absl::StrFormat("unknown flag --%s", name);
  if (!near.empty()) message += absl::StrFormat("; did you mean --%s?", near);
  return absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<CommandLine> CommandLine::Parse(std::span<const Flag> flags, Words words,
                                               std::span<const std::string> args) {
  CommandLine out;
  bool only_words = false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view arg = args[i];
    if (only_words || arg.size() < 2 || arg.front() != '-') {
      out.words_.emplace_back(arg);
      continue;
    }
    if (arg == "--") {
      only_words = true;
      continue;
    }
    if (arg.substr(0, 2) != "--") {
      return absl::InvalidArgumentError(absl::StrFormat("unknown flag %s; flags start with two dashes", arg));
    }
    const std::size_t equals = arg.find('=');
    const std::string_view name = arg.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    const Flag* flag = FindFlag(flags, name);
    if (flag == nullptr) return UnknownFlag(flags, name);
    if (out.Has(name)) return absl::InvalidArgumentError(absl::StrFormat("--%s is given twice", name));
    std::string value;
    if (equals != std::string_view::npos) {
      if (flag->value.empty())
        return absl::InvalidArgumentError(absl::StrFormat("--%s takes no value", name));
      value = arg.substr(equals + 1);
    } else if (!flag->value.empty()) {
      if (i + 1 == args.size()) {
        return absl::InvalidArgumentError(absl::StrFormat("--%s needs a value: %s", name, flag->value));
      }
      value = args[++i];
    }
    out.values_[std::string(name)] = std::move(value);
  }
  if (out.words_.size() < words.min)
    return absl::InvalidArgumentError(absl::StrFormat("%s is missing", words.what));
  if (out.words_.size() > words.max) {
    return absl::InvalidArgumentError(absl::StrFormat("unexpected word \"%s\"", out.words_[words.max]));
  }
  return out;
}

std::optional<std::string> CommandLine::Value(std::string_view flag) const {
  const auto it = values_.find(std::string(flag));
  if (it == values_.end()) return std::nullopt;
  return it->second;
}

std::string CommandLine::ValueOr(std::string_view flag, std::string_view fallback) const {
  return Value(flag).value_or(std::string(fallback));
}

absl::StatusOr<std::int64_t> CommandLine::IntOr(std::string_view flag, std::int64_t fallback) const {
  const std::optional<std::string> text = Value(flag);
  if (!text.has_value()) return fallback;
  const std::optional<std::int64_t> value = ParseInt(*text);
  if (!value.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--%s %s: expected an integer below 2^63 = 9,223,372,036,854,775,808", flag, *text));
  }
  return *value;
}

std::string FlagsHelp(std::span<const Flag> flags) {
  std::string out;
  for (const Flag& flag : flags) {
    const std::string head =
        absl::StrFormat("--%s%s%s", flag.name, flag.value.empty() ? "" : " ", flag.value);
    out += absl::StrFormat("  %-34s %s\n", head, flag.help);
  }
  return out;
}

std::string Nearest(std::string_view word, std::span<const std::string> candidates) {
  word = word.substr(0, 64);
  std::pair<std::size_t, std::string> best{word.size() / 2 + 1, ""};
  for (const std::string& candidate : candidates) {
    best = std::min(best, std::pair{EditDistance(word, candidate), candidate});
  }
  return best.second;
}

}  // namespace kvasir::cli
