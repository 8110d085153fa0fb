#include "planner/cli/show_sweep.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/cli/quantity.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

std::string WordOr(std::int64_t value, const char* zero) { return value == 0 ? zero : std::to_string(value); }

std::string MemoryText(const SweepPoint& point) {
  if (!point.device.empty()) return std::string(point.device);  // what it leaves is a range
  return BytesText(point.options.kv_memory_bytes.front());
}

// Columns that say which point it is; those that are the same everywhere are left out of the table.
struct Column {
  const char* head;
  std::string (*text)(const SweepPoint&);
};
constexpr Column kColumns[] = {
    {"Ruleset", [](const SweepPoint& p) { return p.options.ruleset; }},
    {"Memory", [](const SweepPoint& p) { return MemoryText(p); }},
    {"TP", [](const SweepPoint& p) { return std::to_string(p.options.tp); }},
    {"DCP", [](const SweepPoint& p) { return std::to_string(p.options.dcp); }},
    {"Block", [](const SweepPoint& p) { return WordOr(p.options.block_tokens, "auto"); }},
    {"Cache", [](const SweepPoint& p) { return p.options.cache_dtype; }},
    {"Rollback", [](const SweepPoint& p) { return p.options.state_rollback; }},
    {"Draft", [](const SweepPoint& p) { return WordOr(p.options.draft_tokens, "auto"); }},
};

bool Varies(const Column& column, const std::vector<SweepPoint>& points) {
  for (const SweepPoint& point : points) {
    if (column.text(point) != column.text(points.front())) return true;
  }
  return false;
}

// With a device, what it admits at least and at most.
std::string RequestsText(const SweepPoint& point) {
  if (point.verdict == SweepVerdict::kMayFit) return "0-" + Thousands(point.requests_most) + " ";
  if (point.verdict != SweepVerdict::kFits) return "- ";
  const std::string most = point.requests_most > point.requests ? "-" + Thousands(point.requests_most) : "";
  return Thousands(point.requests) + most + (point.on_front ? "*" : " ");
}

// The points of one row stand together, since lengths are the last axis; some of them may be missing. Leaves
// `place` behind those that were shown, at least one.
std::vector<std::string> RowCells(const std::vector<Column>& columns,
                                  const std::vector<std::int64_t>& lengths,
                                  const std::vector<SweepPoint>& points, std::size_t& place) {
  const auto words_of = [&columns](const SweepPoint& point) {
    std::vector<std::string> words;
    words.reserve(columns.size());
    for (const Column& column : columns) words.push_back(column.text(point));
    return words;
  };
  std::vector<std::string> cells = words_of(points[place]);
  const std::vector<std::string> row = cells;
  std::string why;
  for (const std::int64_t length : lengths) {
    const bool here = place < points.size() && points[place].options.contexts.front() == length &&
                      words_of(points[place]) == row;
    cells.push_back(here ? RequestsText(points[place]) : "");
    if (!here) continue;
    if (why.empty()) why = points[place].why;
    ++place;
  }
  cells.push_back(why);
  return cells;
}

using Json = nlohmann::ordered_json;

Json PointJson(const SweepPoint& point) {
  const PlanOptions& o = point.options;
  Json json = {{"ruleset", o.ruleset},
               {"device", nullptr},
               {"kv_memory_bytes", nullptr},
               {"tp", o.tp},
               {"dcp", o.dcp},
               {"block_tokens", o.block_tokens},
               {"cache_dtype", o.cache_dtype},
               {"state_rollback", o.state_rollback},
               {"draft_tokens", o.draft_tokens},
               {"context_tokens", point.context_tokens},
               {"verdict", SweepVerdictName(point.verdict)},
               {"requests", point.requests},
               {"requests_most", point.requests_most},
               {"bytes_per_request", point.bytes_per_request},
               {"plan_id", nullptr},
               {"on_front", point.on_front},
               {"why", nullptr}};
  if (!point.device.empty()) json["device"] = point.device;
  if (!o.kv_memory_bytes.empty()) json["kv_memory_bytes"] = o.kv_memory_bytes.front();
  if (!point.plan_id.empty()) json["plan_id"] = point.plan_id;
  if (!point.why.empty()) json["why"] = point.why;
  return json;
}

// A value as CSV has it; words that could be taken for more than one cell are quoted.
std::string CellText(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

void ShowSweep(const Console& console, const PlanQuestion& base, const SweepAxes& axes,
               const std::vector<SweepPoint>& points) {
  std::vector<Column> columns;
  std::string same;
  for (const Column& column : kColumns) {
    if (!points.empty() && Varies(column, points)) {
      columns.push_back(column);
    } else if (!points.empty()) {
      same += absl::StrFormat("%s%s %s", same.empty() ? "" : " · ", column.head, column.text(points.front()));
    }
  }
  console.out << Inked(console, Ink::kBold, base.target.name)
              << (base.draft.has_value() ? " + " + base.draft->name : "") << "   " << same << "\n\n";
  TextTable table(std::string(columns.size(), 'l') + std::string(axes.contexts.size(), 'r') + "l");
  std::vector<std::string> head;
  head.reserve(columns.size() + axes.contexts.size() + 1);
  for (const Column& column : columns) head.emplace_back(column.head);
  for (const std::int64_t context : axes.contexts)
    head.push_back((context == 0 ? "max" : TokensText(context)) + " ");
  head.emplace_back("requests at a time");
  table.Row(std::move(head));
  for (std::size_t i = 0; i < points.size();) table.Row(RowCells(columns, axes.contexts, points, i));
  console.out << table.Text(0)
              << "\n* at this length nothing admits as many with fewer ranks, or more with as many\n";
  if (!axes.devices.empty()) {
    console.out << absl::StrFormat(
        "  of a device: with the least and with the most that it leaves for caches beside batches of %s\n",
        Thousands(base.options.max_requests));
  }
  if (const std::int64_t left = CountLeftOut(base, axes); left > 0) {
    console.out << absl::StrFormat("  %s combinations whose DCP does not divide TP are left out\n",
                                   Thousands(left));
  }
}

std::string SweepCsv(const std::vector<SweepPoint>& points) {
  std::string out;
  const Json heading = PointJson(SweepPoint());
  for (const auto& member : heading.items()) out += (out.empty() ? "" : ",") + member.key();
  out += "\n";
  for (const SweepPoint& point : points) {
    bool first = true;
    const Json json = PointJson(point);
    for (const Json& value : json) {
      out += (first ? "" : ",") + CellText(value);
      first = false;
    }
    out += "\n";
  }
  return out;
}

std::string SweepJson(const std::vector<SweepPoint>& points) {
  Json list = Json::array();
  for (const SweepPoint& point : points) list.push_back(PointJson(point));
  const Json json = {{"schema", "kvasir.sweep/1"}, {"points", list}};
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvasir::cli
