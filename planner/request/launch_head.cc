#include "planner/request/launch_head.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr std::array<std::string_view, 7> kWrappers = {"env", "exec", "nohup", "sudo", "time", "uv", "run"};
constexpr std::array<std::string_view, 2> kServers = {"vllm.entrypoints.openai.api_server",
                                                      "vllm.entrypoints.api_server"};
constexpr std::array<std::string_view, 2> kPrograms = {"vllm.entrypoints.cli.main", "vllm"};
constexpr std::size_t kShownMax = 80;

template <std::size_t N>
bool Contains(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Where the "=" of NAME=value stands; npos for another word.
std::size_t AssignmentAt(std::string_view word) {
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (c == '=') return i == 0 ? std::string_view::npos : i;
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (i == 0 || c < '0' || c > '9')) return std::string_view::npos;
  }
  return std::string_view::npos;
}

absl::Status NoEngine(std::string_view found) {
  return FieldError(
      reason::kUnknownValue, "command",
      absl::StrFormat("the command starts \"%s\", not the engine; begin at \"vllm serve MODEL\" or "
                      "\"python -m vllm.entrypoints.openai.api_server --model MODEL\"",
                      std::string(found.substr(0, kShownMax))));
}

class HeadReader {
 public:
  explicit HeadReader(std::span<const std::string> words) : words_(words) {}

  absl::StatusOr<LaunchHead> Read() {
    SkipWrappers();
    if (at_ == words_.size()) return NoEngine("");
    const std::string_view program = BaseName(words_[at_]);
    if (program == "vllm") {
      ++at_;
      return Serve();
    }
    if (program.substr(0, 6) == "python") {
      ++at_;
      return Python();
    }
    return NoEngine(words_[at_]);
  }

 private:
  void SkipWrappers() {
    for (; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      const std::size_t equals = AssignmentAt(word);
      if (equals != std::string_view::npos) {
        head_.variables.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      } else if (Contains(kWrappers, word)) {
        head_.notes.push_back("skipped: " + word);
      } else {
        return;
      }
    }
  }

  absl::StatusOr<LaunchHead> Serve() {
    if (at_ == words_.size() || words_[at_] != "serve") {
      const std::string next = at_ == words_.size() ? "" : words_[at_];
      return FieldError(reason::kUnknownValue, "command",
                        absl::StrFormat("\"vllm %s\" starts no server; only \"vllm serve\" is planned",
                                        next.substr(0, kShownMax)));
    }
    ++at_;
    head_.positional_model = true;
    return Done();
  }

  absl::StatusOr<LaunchHead> Python() {
    for (; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word == "-O" || word == "-OO") {
        head_.optimized_python = true;
      } else if (word == "-X" || word == "-W") {
        ++at_;
      } else if (word == "-m") {
        ++at_;
        if (at_ >= words_.size()) return NoEngine("python -m");
        const std::string module = words_[at_++];
        if (Contains(kServers, module)) return Done();
        if (Contains(kPrograms, module)) return Serve();
        return NoEngine("python -m " + module);
      } else if (word.empty() || word.front() != '-') {
        return NoEngine("python " + word);
      }
    }
    return NoEngine("python");
  }

  LaunchHead Done() {
    const std::span<const std::string> rest = words_.subspan(at_);
    head_.rest.assign(rest.begin(), rest.end());
    return std::move(head_);
  }

  std::span<const std::string> words_;
  std::size_t at_ = 0;
  LaunchHead head_;
};

}  // namespace

absl::StatusOr<LaunchHead> ReadLaunchHead(std::span<const std::string> words) {
  return HeadReader(words).Read();
}

}  // namespace kvasir
