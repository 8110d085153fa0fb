#include "common/models/config_text.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/models/config_error.h"

namespace kvasir {
namespace {

// Real configurations nest eight deep and take up to some hundred kilobytes.
constexpr int kDepthMax = 32;

// Walks the text outside of strings once: whether brackets nest deeper than kDepthMax, known before any
// parser sees the text, and Python's words for numbers that JSON has not, which are overwritten.
bool PrepareText(std::string& text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDepthMax) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == 'I' && text.compare(i, 8, "Infinity") == 0) {
      text.replace(i, 8, "1e308   ");
    } else if (c == 'N' && text.compare(i, 3, "NaN") == 0) {
      text.replace(i, 3, "null");
    }
  }
  return true;
}

absl::Status NotJson(std::string fix, std::string_view name) {
  return ToStatus({ConfigFault::kNotJson, "", "", std::move(fix)}, name);
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseConfigText(std::string_view text, std::string_view name) {
  if (text.size() > static_cast<std::size_t>(kPlanTextBytesMax)) {
    return NotJson(absl::StrFormat("%d bytes; at most %d are read", text.size(), kPlanTextBytesMax), name);
  }
  std::string prepared(text);
  if (!PrepareText(prepared))
    return NotJson(absl::StrFormat("nested deeper than %d levels", kDepthMax), name);
  nlohmann::json document = nlohmann::json::parse(prepared, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return NotJson("the text is not valid JSON (comments are not JSON either)", name);
  if (!document.is_object()) return NotJson("expected a JSON object, the content of a config.json", name);
  return document;
}

}  // namespace kvasir
