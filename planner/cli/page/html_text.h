// Text of a page: what a person or a file named is escaped where it enters, and widths are shares of
// integers.
#ifndef KVASIR_PLANNER_CLI_PAGE_HTML_TEXT_H_
#define KVASIR_PLANNER_CLI_PAGE_HTML_TEXT_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kvasir::cli {

// For element content and quoted attributes; bytes that are no UTF-8 and control characters become U+FFFD.
[[nodiscard]] std::string Escaped(std::string_view text);

// JSON for the inside of a <script> element: no "<", so that nothing in it ends the element. `json` is ASCII.
[[nodiscard]] std::string EscapedScript(std::string_view json);

// What stands in a form for {{name}}.
struct Slot {
  std::string_view name;
  std::string markup;
};
// `text` is escaped, `markup` is not: it was made here.
[[nodiscard]] Slot Text(std::string_view name, std::string_view text);
[[nodiscard]] Slot Markup(std::string_view name, std::string_view markup);

// The form with each {{name}} replaced, in one pass: what was put in is never searched. Names without a slot
// stay as they are.
[[nodiscard]] std::string Filled(std::string_view form, std::initializer_list<Slot> slots);

// "12.3456%", rounded down: a width that is drawn. 0 where `whole` is; requires 0 <= part <= whole.
[[nodiscard]] std::string Share(std::int64_t part, std::int64_t whole);

// "1 request", "81 requests".
[[nodiscard]] std::string Counted(std::int64_t count, std::string_view noun);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_PAGE_HTML_TEXT_H_
