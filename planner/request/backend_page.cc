#include <string>
#include <vector>

#include "common/geometry/dtype.h"
#include "planner/request/backends.h"

namespace kvasir {
namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string LayoutsText(const BackendFacts& facts) {
  std::vector<std::string> words;
  words.reserve(facts.layouts.size());
  for (const LayoutKind kind : facts.layouts) words.emplace_back(LayoutKindName(kind));
  return Joined(words);
}

std::string DtypesText(const BackendFacts& facts) {
  std::vector<std::string> words;
  words.reserve(facts.cache_dtypes.size());
  for (const DType dtype : facts.cache_dtypes) words.emplace_back(DTypeName(dtype));
  return Joined(words);
}

std::string PagesText(const BackendRow& row) {
  if (row.page_multiple > 0) return "multiples of " + std::to_string(row.page_multiple);
  std::vector<std::string> words;
  words.reserve(row.facts.page_tokens.size());
  for (const std::int64_t page : row.facts.page_tokens) words.push_back(std::to_string(page));
  return Joined(words);
}

std::string HeadsText(const BackendFacts& facts) {
  std::vector<std::string> words;
  if (facts.heads_max > 0) words.push_back("at most " + std::to_string(facts.heads_max));
  for (const HeadTile& tile : facts.head_tiles) {
    const std::string upto = tile.heads_max == 0 ? " above" : " up to " + std::to_string(tile.heads_max);
    words.push_back("tiles of " + std::to_string(tile.tile) + upto);
  }
  if (facts.block_rows_max > 0) words.push_back("at most " + std::to_string(facts.block_rows_max) + " rows");
  return Joined(words);
}

std::string Mark(bool able) { return able ? "yes" : ""; }

std::string EngineText(const BackendRow& row) {
  std::string text;
  for (const char c : row.engine) text += c == ' ' ? std::string("<br>") : std::string(1, c);
  return text;
}

void AppendRow(const std::vector<std::string>& cells, std::string& page) {
  for (const std::string& cell : cells) page += "|" + (cell.empty() ? std::string() : " " + cell) + " ";
  page += "|\n";
}

}  // namespace

std::string BackendPage() {
  std::string page =
      "# Backends\n\n"
      "Generated from planner/request/backend_rows.cc; `tools/golden` rewrites it. Kernel families and what "
      "they\n"
      "can do; an empty cell is a no. \"Rows\" are the query rows of one sequence in one pass. A draft that "
      "decodes\n"
      "its block at once needs `non-causal`; verification needs `causal`; a cache sharded over context needs "
      "the\n"
      "column beside it, and a log-sum-exp.\n\n"
      "## What kernels take\n\n";
  AppendRow({"backend", "vLLM's name", "hardware", "caches", "dtypes", "pages (tokens)", "heads and rows"},
            page);
  page += "|---|---|---|---|---|---|---|\n";
  for (const BackendRow& row : BackendRows()) {
    AppendRow({"`" + row.facts.name + "`", EngineText(row), std::string(row.hardware.words),
               LayoutsText(row.facts), DtypesText(row.facts), PagesText(row), HeadsText(row.facts)},
              page);
  }
  page += "\n## What passes they run\n\n";
  AppendRow({"backend", "causal rows", "sharded", "non-causal rows", "sharded", "LSE", "a row without keys",
             "graphs", "vLLM over a sharded context"},
            page);
  page += "|---|---|---|---|---|---|---|---|---|\n";
  for (const BackendRow& row : BackendRows()) {
    const BackendFacts& facts = row.facts;
    std::vector<std::string> engine;
    if (row.engine_causal_dcp) engine.emplace_back("causal");
    if (row.engine_non_causal_dcp) engine.emplace_back("non-causal");
    AppendRow({"`" + facts.name + "`", Mark(facts.causal_multi_token), Mark(facts.causal_multi_token_dcp),
               Mark(facts.non_causal_multi_token), Mark(facts.non_causal_multi_token_dcp),
               std::string(LseBaseName(row.lse)), std::string(row.empty_row),
               std::string(GraphClassName(row.graphs)), Joined(engine)},
              page);
  }
  page +=
      "\nThe last column is what vLLM's metadata builders of August 2026 let a DSpark draft and its target "
      "do; other\n"
      "pairs end in a ValueError at start, whatever the kernel could.\n\n## Sources\n\n";
  for (const BackendRow& row : BackendRows()) {
    page += "*   `" + row.facts.name + "`: " + std::string(row.source) + "\n";
  }
  return page;
}

}  // namespace kvasir
