// What layouts leave unused, for every model of the catalogue with and without its draft: the native plan and
// the engine's, in both groupings and with its recovery of recurrent state, beside the floor that no layout
// without sharing can go above.
#ifndef KVASIR_TESTS_TOOLS_WASTE_ROWS_H_
#define KVASIR_TESTS_TOOLS_WASTE_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/questions/plan_question.h"

namespace kvasir::testing {

// One length of one question.
struct WasteCell {
  std::int64_t context_tokens = 0;
  std::int64_t floor = 0;  // requests if the whole arena were payload
  std::int64_t native = 0;
  std::int64_t native_bytes = 0;  // per request and rank
  // Requests under the engine, and bytes of one; nullopt: it refuses the question, or there is no such mode.
  std::optional<std::int64_t> merged;
  std::int64_t merged_bytes = 0;
  std::optional<std::int64_t> apart;        // the draft's latent caches kept from the target's groups
  std::optional<std::int64_t> recover_ssm;  // one recurrent state and a buffer of inputs
};

struct WasteRow {
  std::string target;
  std::string draft;  // empty: none
  std::int64_t tp = 1;
  std::int64_t dcp = 1;
  std::int64_t memory_bytes = 0;
  std::string refusal;           // the rule that native refuses it by, with any kernels; then nothing else
  bool fits = false;             // the longest length
  std::vector<WasteCell> cells;  // by length
};

// The whole catalogue.
[[nodiscard]] std::vector<WasteRow> WasteRows();

// Markdown.
[[nodiscard]] std::string WastePage(const std::vector<WasteRow>& rows);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TOOLS_WASTE_ROWS_H_
