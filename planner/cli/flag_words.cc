#include "planner/cli/flag_words.h"

#include <array>
#include <cstddef>
#include <utility>

namespace kvasir::cli {
namespace {

constexpr std::array kWords = {
    std::pair{std::string_view("topology.tp"), std::string_view("--tp")},
    std::pair{std::string_view("topology.dcp"), std::string_view("--dcp")},
    std::pair{std::string_view("topology.interleave"), std::string_view("--interleave")},
    std::pair{std::string_view("context_tokens"), std::string_view("--context")},
    std::pair{std::string_view("max_requests"), std::string_view("--max-requests")},
    std::pair{std::string_view("min_requests"), std::string_view("--min-requests")},
    std::pair{std::string_view("draft_tokens"), std::string_view("--draft-tokens")},
    std::pair{std::string_view("prefill_chunk"), std::string_view("--prefill-chunk")},
    std::pair{std::string_view("cache_dtype"), std::string_view("--kv-cache-dtype")},
    std::pair{std::string_view("draft_context"), std::string_view("--draft-context")},
    std::pair{std::string_view("rollback"), std::string_view("--state-rollback")},
    std::pair{std::string_view("ranks[].kv_memory"), std::string_view("--kv-memory")},
    std::pair{std::string_view("kv_memory"), std::string_view("--kv-memory")},
    std::pair{std::string_view("ruleset"), std::string_view("--ruleset")},
};

bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

}  // namespace

std::string FlagOf(std::string_view field) {
  for (const auto& [known, flag] : kWords) {
    if (known == field) return std::string(flag);
  }
  return std::string(field);
}

std::string InFlagWords(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    if (!IsWordChar(text[at])) {
      out += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && (IsWordChar(text[end]) || text[end] == '[' || text[end] == ']')) ++end;
    std::string_view word = text.substr(at, end - at);
    std::size_t trailing = 0;
    while (!word.empty() && word.back() == '.') {
      word.remove_suffix(1);
      ++trailing;
    }
    out += FlagOf(word);
    out.append(trailing, '.');
    at = end;
  }
  return out;
}

}  // namespace kvasir::cli
