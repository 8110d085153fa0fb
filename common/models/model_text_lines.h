// The lines and words of canonical text, for its reader (model_text_parse.cc).
#ifndef KVASIR_COMMON_MODELS_MODEL_TEXT_LINES_H_
#define KVASIR_COMMON_MODELS_MODEL_TEXT_LINES_H_

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/geometry/dtype.h"
#include "common/models/config_error.h"

namespace kvasir {

inline absl::Status TextError(std::string message) {
  return FieldError(reason::kModelTextInvalid, "", std::move(message));
}

// One line of the text, read from the left. The first fault is kept; later reads give stand-ins.
class LineReader {
 public:
  LineReader(std::string_view line, std::int64_t number) : rest_(line), number_(number) {}

  // The next space-separated word must be `word`.
  void Expect(std::string_view word) {
    const std::string_view got = Next();
    if (got != word) Fail(got, word);
  }
  std::string_view Next() {
    if (started_ && !rest_.empty()) rest_.remove_prefix(1);  // the separating space
    started_ = true;
    const std::size_t space = rest_.find(' ');
    const std::string_view word = rest_.substr(0, space);
    rest_.remove_prefix(word.size());
    return word;
  }

  // The next word must be "name=value"; gives the value.
  std::string_view Value(std::string_view name) {
    const std::string_view word = Next();
    if (word.substr(0, name.size()) != name || word.size() <= name.size() || word[name.size()] != '=') {
      Fail(word, absl::StrFormat("%s=...", name));
      return {};
    }
    return word.substr(name.size() + 1);
  }

  // Whether the next word is `word`, or "word=..." where it ends with '='.
  [[nodiscard]] bool Peek(std::string_view word) const {
    const std::string_view rest = started_ && !rest_.empty() ? rest_.substr(1) : rest_;
    const std::string_view next = rest.substr(0, rest.find(' '));
    return word.ends_with('=') ? next.starts_with(word) : next == word;
  }

  std::int64_t ParseInt(std::string_view word, std::string_view name) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      Fail(word, absl::StrFormat("a 64-bit integer as %s", name));
    }
    return value;
  }
  double ParseReal(std::string_view word, std::string_view name) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      Fail(word, absl::StrFormat("a number as %s", name));
    return value;
  }
  DType ParseDType(std::string_view word) {
    const std::optional<DType> dtype = kvasir::ParseDType(word);
    if (!dtype.has_value()) Fail(word, "bf16, f16 or f32");
    return dtype.value_or(DType::kBf16);
  }
  bool ParseBool(std::string_view word, std::string_view name) {
    if (word != "true" && word != "false") Fail(word, absl::StrFormat("true or false as %s", name));
    return word == "true";
  }

  void Fail(std::string_view got, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = TextError(absl::StrFormat("model text line %d: got \"%s\", expected %s", number_,
                                        ShownText(got, 80), expected));
  }

  [[nodiscard]] absl::Status Finish() {
    if (!rest_.empty()) Fail(rest_, "the line's end");
    return status_;
  }

 private:
  std::string_view rest_;
  std::int64_t number_;
  bool started_ = false;
  absl::Status status_;
};

class TextReader {
 public:
  explicit TextReader(std::string_view text) : rest_(text) {}

  // The next line, without its LF. Past the end every line is empty, which no rule accepts.
  LineReader Line() {
    ++number_;
    const std::size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return LineReader(line, number_);
  }
  [[nodiscard]] bool NextStartsWith(std::string_view word) const {
    return rest_.substr(0, word.size()) == word;
  }
  [[nodiscard]] bool AtEnd() const { return rest_.empty(); }
  [[nodiscard]] std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MODEL_TEXT_LINES_H_
