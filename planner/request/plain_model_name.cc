#include "planner/request/plain_model_name.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kvasir {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Words that say how a copy was made, not what it is.
bool IsRemark(std::string_view word) {
  constexpr std::array<std::string_view, 32> kWords = {
      "nvfp4",     "mxfp4",          "fp8",    "bf16",     "int4",    "int8",      "awq",     "gptq",
      "autoround", "4bit",           "8bit",   "instruct", "it",      "base",      "chat",    "thinking",
      "mtp",       "heretic",        "w8a8",   "w4a16",    "dynamic", "quantized", "unsloth", "hf",
      "meta",      "w8a8.quantized", "nvidia", "modelopt", "gguf",    "qat",       "pt",      "abliterated"};
  if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) return true;
  // A date: 2507, 2603.
  return word.size() == 4 && std::all_of(word.begin(), word.end(), IsDigit) && word.front() == '2';
}

}  // namespace

std::string PlainModelName(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  name = name.substr(0, name.find(" ("));
  std::string plain;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && !IsRemark(word)) plain += (plain.empty() ? "" : "-") + word;
    word.clear();
  };
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ' || c == '(' || c == ')' || c == ',') {
      end_word();
    } else {
      word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  end_word();
  return plain;
}

}  // namespace kvasir
