// The promise of the native layout, over the whole catalogue.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/testing/golden.h"
#include "tests/tools/waste_rows.h"

namespace kvasir::testing {
namespace {

const std::vector<WasteRow>& Rows() {
  static const auto* const rows = new std::vector<WasteRow>(WasteRows());
  return *rows;
}

std::string NameOf(const WasteRow& row, const WasteCell& cell) {
  return absl::StrFormat("%s + %s TP %d DCP %d, %d bytes, %d tokens", row.target, row.draft, row.tp, row.dcp,
                         row.memory_bytes, cell.context_tokens);
}

TEST(WasteTest, CoversTheCatalogue) {
  EXPECT_GT(Rows().size(), 300U);
  const auto with_engine = std::count_if(Rows().begin(), Rows().end(), [](const WasteRow& row) {
    return !row.cells.empty() && row.cells.back().merged.has_value();
  });
  EXPECT_GT(with_engine, 150);
  // What is refused has one reason at most: caches that are no rows per token, no window and no state.
  for (const WasteRow& row : Rows())
    EXPECT_TRUE(row.refusal.empty() || row.refusal == "CACHE_KIND_UNSUPPORTED") << row.target << row.refusal;
}

TEST(WasteTest, NeverBelowTheEngine) {
  for (const WasteRow& row : Rows()) {
    for (const WasteCell& cell : row.cells) {
      for (const auto& engine : {cell.merged, cell.apart, cell.recover_ssm})
        EXPECT_GE(cell.native, engine.value_or(0)) << NameOf(row, cell);
    }
  }
}

TEST(WasteTest, NearTheFloor) {
  for (const WasteRow& row : Rows()) {
    for (const WasteCell& cell : row.cells) {
      EXPECT_LE(cell.native, cell.floor) << NameOf(row, cell);
      // 98 % of the floor, or the floor minus one.
      EXPECT_TRUE(cell.native * 100 >= cell.floor * 98 || cell.native >= cell.floor - 1)
          << NameOf(row, cell) << ": " << cell.native << " of " << cell.floor;
    }
  }
}

TEST(WasteTest, Page) { ExpectGolden("../../docs/generated/waste.md", WastePage(Rows())); }

}  // namespace
}  // namespace kvasir::testing
