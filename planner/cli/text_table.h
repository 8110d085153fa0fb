// Columns of text that line up; widths count characters, not bytes.
#ifndef KVASIR_PLANNER_CLI_TEXT_TABLE_H_
#define KVASIR_PLANNER_CLI_TEXT_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::cli {

class TextTable {
 public:
  // One letter a column: 'l' left, 'r' right. `gap` spaces stand between columns.
  explicit TextTable(std::string_view alignment, std::size_t gap = 3) : alignment_(alignment), gap_(gap) {}

  // Short rows are filled with empty cells; a cell beyond the last column is dropped.
  void Row(std::vector<std::string> cells);

  // Every line begins with `indent` spaces and has no spaces at its end.
  [[nodiscard]] std::string Text(std::size_t indent) const;

 private:
  std::string alignment_;
  std::size_t gap_;
  std::vector<std::vector<std::string>> rows_;
};

// Characters of UTF-8 text, each taken as one column wide.
[[nodiscard]] std::size_t DisplayWidth(std::string_view text);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_TEXT_TABLE_H_
