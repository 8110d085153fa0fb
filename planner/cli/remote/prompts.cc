#include "planner/cli/remote/prompts.h"

#include <cstddef>
#include <limits>
#include <optional>

#include "absl/strings/str_format.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {

std::vector<std::int32_t> BytesPrompt(std::string_view text) {
  std::vector<std::int32_t> tokens = {kBeginToken};
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

absl::StatusOr<std::vector<std::int32_t>> ParseTokenIds(std::string_view text) {
  std::vector<std::int32_t> tokens;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::optional<std::int64_t> id = ParseInt(rest.substr(0, comma));
    if (!id.has_value() || *id < 0 || *id > std::numeric_limits<std::int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tokens \"%s\": write them like 1,2,3", text.substr(0, 80)));
    }
    tokens.push_back(static_cast<std::int32_t>(*id));
    if (comma == std::string_view::npos) return tokens;
    rest.remove_prefix(comma + 1);
  }
}

std::string TokensAsText(const std::vector<std::int32_t>& tokens) {
  std::string out;
  for (const std::int32_t token : tokens) {
    if (token >= ' ' && token <= '~' && token != '\\') {
      out += static_cast<char>(token);
    } else if (token >= 0 && token <= 255) {
      out += absl::StrFormat("\\x%02x", token);
    } else if (token != kEndToken) {
      out += absl::StrFormat("<%d>", token);
    }
  }
  return out;
}

std::string TokenIdsText(const std::vector<std::int32_t>& tokens) {
  std::string out;
  for (const std::int32_t token : tokens) out += (out.empty() ? "" : ",") + std::to_string(token);
  return out;
}

}  // namespace kvasir::cli
