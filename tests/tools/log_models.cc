#include "tests/tools/log_models.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/edit_distance.h"
#include "common/models/catalogue.h"
#include "common/models/read_config.h"
#include "planner/request/plain_model_name.h"
#include "tests/tools/known_shapes.h"

namespace kvasir {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether two names differ in one digit after a point, or one has no point there: releases of one shape,
// "qwen3.6-27b" and "qwen3.5-27b", "minimax-m2" and "minimax-m2.5".
bool SamePointRelease(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  std::size_t at = 0;
  while (at < a.size() && a[at] == b[at]) ++at;
  if (at == b.size()) return false;
  if (a.size() == b.size()) {
    const bool point = at > 0 && a[at - 1] == '.' && IsDigit(a[at]) && IsDigit(b[at]);
    return point && a.substr(at + 1) == b.substr(at + 1);
  }
  return b.size() == a.size() + 2 && b[at] == '.' && IsDigit(b[at + 1]) && a.substr(at) == b.substr(at + 2);
}

// "a4b": how many parameters of a mixture a token meets.
bool IsActivated(std::string_view word) {
  return word.size() > 2 && word.front() == 'a' && word.back() == 'b' &&
         std::all_of(word.begin() + 1, word.end() - 1, IsDigit);
}

// Words that name another shape, not a copy: a size, or a member of the family.
bool IsOtherShape(std::string_view word) {
  constexpr std::array<std::string_view, 14> kWords = {"air",  "distill", "flash", "lite", "mini",
                                                       "nano", "next",    "omni",  "pro",  "small",
                                                       "vl",   "v",       "max",   "coder"};
  if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) return true;
  const bool size = word.size() > 1 && (word.back() == 'b' || word.back() == 'm') && IsDigit(word.front());
  return size || IsActivated(word);
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t dash = std::min(text.find('-'), text.size());
    if (dash > 0) words.push_back(text.substr(0, dash));
    text.remove_prefix(std::min(dash + 1, text.size()));
  }
  return words;
}

// "gemma-4-26b-a4b" for "gemma-4-26b".
bool IsKnownMore(std::string_view known, std::string_view key) {
  if (known.size() <= key.size() || known.substr(0, key.size()) != key || known[key.size()] != '-')
    return false;
  return IsActivated(known.substr(key.size() + 1));
}

// "kimi-k2" for "kimi-k2.6" and for "kimi-k2-somebody-s-copy".
bool IsCopyOf(std::string_view known, std::string_view key) {
  if (key.size() <= known.size() || key.substr(0, known.size()) != known) return false;
  const std::string_view tail = key.substr(known.size());
  if (tail.front() != '-' && tail.front() != '.') return false;
  const std::vector<std::string_view> words = WordsOf(tail);
  return std::none_of(words.begin(), words.end(), IsOtherShape);
}

}  // namespace

LogModels::LogModels(const std::string& configs) {
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(configs, ec)) {
    const std::string folder = entry.path().filename().string();
    const std::size_t split = folder.find("__");
    if (split == std::string::npos || !std::filesystem::exists(entry.path() / "config.json", ec)) continue;
    Add(folder.substr(split + 2), {"", entry.path().string(), ""});
  }
  for (const CatalogueEntry& entry : ListCatalogue()) Add(entry.hub_name, {"", "", entry.name});
  for (const std::string_view name : KnownShapes()) Add(name, {});
  // Files first where a name is there twice; shorter paths and names first, so that the choice is the same
  // anywhere.
  std::sort(known_.begin(), known_.end(), [](const Known& a, const Known& b) {
    const auto rank = [](const Known& k) { return k.path.empty() ? (k.catalogue.empty() ? 2 : 1) : 0; };
    return std::tuple(a.key, rank(a), a.path, a.catalogue) < std::tuple(b.key, rank(b), b.path, b.catalogue);
  });
}

void LogModels::Add(std::string_view name, Known known) {
  known.key = PlainModelName(name);
  known_.push_back(std::move(known));
}

absl::StatusOr<ModelDescription> LogModels::Find(std::string_view name) const {
  const std::string key = PlainModelName(name);
  const auto read = [](const Known& known) -> absl::StatusOr<ModelDescription> {
    if (!known.path.empty()) return ReadConfigPath(known.path);
    if (!known.catalogue.empty()) return FindInCatalogue(known.catalogue);
    return KnownShape(known.key);
  };
  const std::vector<std::function<bool(const Known&)>> passes = {
      [&](const Known& k) { return k.key == key; },
      [&](const Known& k) { return SamePointRelease(k.key, key); },
      [&](const Known& k) { return IsKnownMore(k.key, key); },
      [&](const Known& k) { return IsCopyOf(k.key, key); },
  };
  for (const auto& fits : passes) {
    const Known* best = nullptr;
    for (const Known& known : known_) {
      if (!fits(known)) continue;
      // The longest of those that the name begins with; else the first.
      if (best == nullptr || (known.key.size() > best->key.size() && known.key.size() <= key.size()))
        best = &known;
    }
    if (best == nullptr) continue;
    absl::StatusOr<ModelDescription> model = read(*best);
    if (model.ok()) return model;
  }
  // "OmniCoder 9B (Qwen3.5-9B architecture, inferred)": the remark names what it is made like.
  const std::size_t open = name.find('(');
  if (open != std::string_view::npos) {
    const std::string_view remark = name.substr(open + 1);
    const std::string inner(remark.substr(0, remark.find_first_of(" ,)")));
    if (!inner.empty() && inner.find('(') == std::string::npos) return Find(inner);
  }
  return absl::NotFoundError(
      absl::StrFormat("model \"%s\" is not known (as \"%s\")", std::string(name), key));
}

}  // namespace kvasir
