// A public start-up log as one row of ../shared/data/capacity_logs.jsonl: what was launched, and what the
// engine printed.
#ifndef KVASIR_TESTS_TOOLS_LOG_ROW_H_
#define KVASIR_TESTS_TOOLS_LOG_ROW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvasir {

struct LogRow {
  std::string id;
  std::string model;
  std::string engine_version;
  std::string date;
  std::string gpu;
  std::optional<std::int64_t> tp;
  std::optional<std::int64_t> pp;
  std::optional<std::int64_t> dcp;
  std::string kv_cache_dtype;
  std::optional<std::int64_t> block_size;
  std::optional<std::int64_t> max_model_len;
  std::string spec_method;  // empty: no drafting
  std::string spec_model;
  std::optional<std::int64_t> spec_tokens;
  std::optional<double> available_gib;
  std::optional<std::int64_t> tokens;
  std::optional<double> concurrency;
  double concurrency_step = 0.01;  // the last decimal that is given: 4.3 may be 4.25 in the log
  std::optional<std::int64_t> num_blocks;
  std::optional<std::int64_t> estimated_max_model_len;
  std::optional<double> needed_gib;
  std::vector<std::string> other_lines;
  std::string check_kind;  // empty: too few inputs

  // The number after `word` in one of the other lines: "max_num_batched_tokens 8192".
  [[nodiscard]] std::optional<std::int64_t> NumberAfter(std::string_view word) const;
  [[nodiscard]] bool Mentions(std::string_view words) const;
};

// One line of the file. InvalidArgument names what is wrong; fields that are not there stay empty.
[[nodiscard]] absl::StatusOr<LogRow> ReadLogRow(std::string_view line);

}  // namespace kvasir

#endif  // KVASIR_TESTS_TOOLS_LOG_ROW_H_
