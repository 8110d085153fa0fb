#include "planner/request/launch_split.h"

#include <cstddef>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

absl::Status OpenQuote(char quote) {
  return FieldError(
      reason::kMalformedMessage, "command",
      absl::StrFormat("the quote %c is not closed; close it, or paste the whole command", quote));
}

// Reads one text from its front.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<std::string>> Split() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (IsBlank(c)) {
        EndWord();
        ++at_;
      } else if (c == '#' && !in_word_) {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ';' || c == '|' || c == '&' || c == '>') {
        break;
      } else if (c == '\'' || c == '"') {
        absl::Status status = Quoted(c);
        if (!status.ok()) return status;
      } else if (c == '\\') {
        Escaped();
      } else {
        Take(c);
      }
      if (words_.size() > kLaunchWordsMax) {
        return FieldError(reason::kTooManyItems, "command",
                          absl::StrFormat("more than %d words; is this a launch command?", kLaunchWordsMax));
      }
    }
    EndWord();
    return std::move(words_);
  }

 private:
  void Take(char c) {
    word_ += c;
    in_word_ = true;
    ++at_;
  }
  void EndWord() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }
  void Escaped() {
    ++at_;
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;  // a line's end from another system
    if (at_ >= text_.size()) return;
    if (text_[at_] == '\n') {
      ++at_;
    } else {
      Take(text_[at_]);
    }
  }
  absl::Status Quoted(char quote) {
    in_word_ = true;
    ++at_;
    while (at_ < text_.size() && text_[at_] != quote) {
      const bool escapes = quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size();
      if (escapes && std::string_view("\\\"$`\n").find(text_[at_ + 1]) != std::string_view::npos) {
        ++at_;
        if (text_[at_] == '\n') {
          ++at_;
          continue;
        }
      }
      Take(text_[at_]);
    }
    if (at_ >= text_.size()) return OpenQuote(quote);
    ++at_;
    return absl::OkStatus();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string word_;
  bool in_word_ = false;
  std::vector<std::string> words_;
};

bool IsPlain(std::string_view word) {
  constexpr std::string_view kPlain = "_-./:=,+@%~";
  for (const char c : word) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && kPlain.find(c) == std::string_view::npos) return false;
  }
  return !word.empty();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitCommand(std::string_view text) {
  if (text.size() > kLaunchBytesMax) {
    return FieldError(reason::kTooManyItems, "command",
                      absl::StrFormat("%d bytes, at most %d are read", text.size(), kLaunchBytesMax));
  }
  return Splitter(text).Split();
}

std::string JoinCommand(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (IsPlain(word)) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) {
      if (c == '\'') {
        line += "'\\''";
      } else {
        line += c;
      }
    }
    line += '\'';
  }
  return line;
}

}  // namespace kvasir
