// Between words and token ids. One tokenizer is known, `bytes`: a token is a byte, 256 begins and 257 ends a
// text, 258 is the draft's mask.
#ifndef KVASIR_PLANNER_CLI_REMOTE_PROMPTS_H_
#define KVASIR_PLANNER_CLI_REMOTE_PROMPTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvasir::cli {

inline constexpr std::int32_t kBeginToken = 256;
inline constexpr std::int32_t kEndToken = 257;

// kBeginToken and the bytes.
[[nodiscard]] std::vector<std::int32_t> BytesPrompt(std::string_view text);

// "1,2,3". InvalidArgument: another form, or an id that is no 32-bit number of 0 or more.
[[nodiscard]] absl::StatusOr<std::vector<std::int32_t>> ParseTokenIds(std::string_view text);

// Printable bytes as they are, others as \x0a, ids beyond 255 as <300>; kEndToken vanishes.
[[nodiscard]] std::string TokensAsText(const std::vector<std::int32_t>& tokens);

// "1,2,3".
[[nodiscard]] std::string TokenIdsText(const std::vector<std::int32_t>& tokens);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_REMOTE_PROMPTS_H_
