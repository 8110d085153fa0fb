#include "planner/request/backends.h"

#include <algorithm>
#include <cstddef>

#include "common/base/limits.h"
#include "planner/request/backend_rows.h"

namespace kvasir {
namespace {

template <class T>
bool Contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<std::int64_t> Narrowed(const BackendRow& row, std::int64_t block) {
  if (row.facts.page_tokens.empty()) return {};
  const bool multiple =
      row.page_multiple > 0 && block > 0 && block <= kBlockTokensMax && block % row.page_multiple == 0;
  return multiple || Contains(row.facts.page_tokens, block) ? std::vector<std::int64_t>{block}
                                                            : std::vector<std::int64_t>{};
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

std::string_view LseBaseName(LseBase base) {
  switch (base) {
    case LseBase::kNone:
      return "none";
    case LseBase::kNatural:
      return "natural";
    case LseBase::kLog2:
      return "log2";
  }
  return "invalid";
}

std::string_view GraphClassName(GraphClass graphs) {
  switch (graphs) {
    case GraphClass::kNever:
      return "never";
    case GraphClass::kSingleToken:
      return "single tokens";
    case GraphClass::kUniform:
      return "uniform batches";
    case GraphClass::kAlways:
      return "always";
  }
  return "invalid";
}

const std::vector<BackendRow>& BackendRows() {
  static const std::vector<BackendRow> kRows = [] {
    std::vector<BackendRow> rows = MakeBackendRows();
    std::sort(rows.begin(), rows.end(),
              [](const BackendRow& a, const BackendRow& b) { return a.facts.name < b.facts.name; });
    return rows;
  }();
  return kRows;
}

std::vector<BackendFacts> BackendTable() { return BackendsWithBlock(0); }

std::vector<BackendFacts> BackendsWithBlock(std::int64_t block_tokens) {
  std::vector<BackendFacts> table;
  table.reserve(BackendRows().size());
  for (const BackendRow& row : BackendRows()) {
    table.push_back(row.facts);
    if (block_tokens != 0) table.back().page_tokens = Narrowed(row, block_tokens);
  }
  return table;
}

bool KeepsState(std::string_view backend) {
  for (const BackendRow& row : BackendRows()) {
    if (row.facts.name == backend) return Contains(row.facts.layouts, LayoutKind::kState);
  }
  return false;
}

std::vector<const BackendRow*> RowsOfEngine(std::string_view engine_name) {
  std::string wanted(engine_name);
  for (char& c : wanted) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  std::vector<const BackendRow*> rows;
  for (const BackendRow& row : BackendRows()) {
    if (Contains(WordsOf(row.engine), std::string_view(wanted))) rows.push_back(&row);
  }
  return rows;
}

std::vector<std::string> EngineBackends(LayoutKind kind) {
  std::vector<std::string> names;
  for (const BackendRow& row : BackendRows()) {
    if (!Contains(row.facts.layouts, kind)) continue;
    for (const std::string_view name : WordsOf(row.engine)) {
      const bool latent_name = name.find("MLA") != std::string_view::npos;
      if (latent_name == (kind == LayoutKind::kLatent)) names.emplace_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::int64_t SmallestPage(const BackendRow& row) {
  if (row.page_multiple > 0) return row.page_multiple;
  const auto& pages = row.facts.page_tokens;
  return pages.empty() ? 1 : *std::min_element(pages.begin(), pages.end());
}

std::int64_t PreferredBlock(const BackendRow& row) {
  constexpr std::int64_t kEngineDefault = 16;
  if (row.page_multiple > 0)
    return kEngineDefault % row.page_multiple == 0 ? kEngineDefault : row.page_multiple;
  for (const std::int64_t page : row.facts.page_tokens) {
    if (kEngineDefault % page == 0) return kEngineDefault;
  }
  return SmallestPage(row);
}

}  // namespace kvasir
