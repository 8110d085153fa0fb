#include "tests/tools/log_row.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"

namespace kvasir {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLineBytesMax = 1 << 20;

std::string Text(const Json& row, const char* field) {
  const auto at = row.find(field);
  return at != row.end() && at->is_string() ? at->get<std::string>() : "";
}

std::optional<std::int64_t> Int(const Json& row, const char* field) {
  const auto at = row.find(field);
  if (at == row.end() || !at->is_number()) return std::nullopt;
  const auto value = at->get<double>();
  if (!std::isfinite(value) || std::fabs(value) > 1e15) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<double> Real(const Json& row, const char* field) {
  const auto at = row.find(field);
  if (at == row.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

// 0.01, 0.1 or 1: the place of the last decimal that is not 0.
double StepOf(double value) {
  const auto whole = [](double v) { return std::fabs(v - std::round(v)) < 1e-9; };
  if (whole(value)) return 1.0;
  return whole(value * 10) ? 0.1 : 0.01;
}

std::string FirstWord(const std::string& text) { return text.substr(0, text.find(' ')); }

}  // namespace

bool LogRow::Mentions(std::string_view words) const {
  for (const std::string& line : other_lines) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

std::optional<std::int64_t> LogRow::NumberAfter(std::string_view word) const {
  for (const std::string& line : other_lines) {
    const std::size_t at = line.find(word);
    if (at == std::string::npos) continue;
    const std::size_t begin = line.find_first_of("0123456789", at + word.size());
    if (begin == std::string::npos) continue;
    std::int64_t value = 0;
    std::from_chars(line.data() + begin, line.data() + line.size(), value);
    return value;
  }
  return std::nullopt;
}

absl::StatusOr<LogRow> ReadLogRow(std::string_view line) {
  if (line.size() > kLineBytesMax) return absl::InvalidArgumentError("a line of more than 1 MiB");
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("not a JSON object");
  LogRow row;
  row.id = Text(json, "id");
  row.model = Text(json, "model");
  row.engine_version = Text(json, "engine_version");
  row.date = Text(json, "date");
  row.gpu = Text(json, "gpu");
  row.tp = Int(json, "tp");
  row.pp = Int(json, "pp");
  row.dcp = Int(json, "dcp");
  row.kv_cache_dtype = Text(json, "kv_cache_dtype");
  row.block_size = Int(json, "block_size");
  row.max_model_len = Int(json, "max_model_len");
  const auto spec = json.find("spec_decode");
  if (spec != json.end() && spec->is_object()) {
    row.spec_method = FirstWord(Text(*spec, "method"));
    row.spec_model = Text(*spec, "model");
    row.spec_tokens = Int(*spec, "num_tokens");
  }
  row.available_gib = Real(json, "available_kv_memory_gib");
  row.tokens = Int(json, "kv_cache_tokens");
  row.concurrency = Real(json, "max_concurrency");
  if (row.concurrency.has_value()) row.concurrency_step = StepOf(*row.concurrency);
  row.num_blocks = Int(json, "num_gpu_blocks");
  row.estimated_max_model_len = Int(json, "estimated_max_model_len");
  row.needed_gib = Real(json, "needed_gib_for_max_model_len");
  const auto lines = json.find("other_lines");
  if (lines != json.end() && lines->is_array()) {
    for (const Json& one : *lines) {
      if (one.is_string()) row.other_lines.push_back(one.get<std::string>());
    }
  }
  row.check_kind = Text(json, "check_kind");
  if (row.id.empty()) return absl::InvalidArgumentError("no id");
  return row;
}

}  // namespace kvasir
