// kvasir diff: what one plan admits beside another, why, and whether that is less than a pipeline allows.
#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/engine_diff.h"
#include "planner/cli/plan_store.h"
#include "planner/cli/quantity.h"
#include "planner/cli/text_table.h"
#include "planner/core/compare_plans.h"

namespace kvasir::cli {
namespace {

constexpr std::array kFlags = {
    Flag{"fail-on-capacity-drop", "PERCENT",
         "exit 1 where a length admits fewer requests than before by more than that"},
    Flag{"output", "FORM", "table or json (table)"},
};
constexpr std::size_t kIdShown = 12;
constexpr std::size_t kCellShown = 40;

struct Difference {
  StoredPlan before;
  StoredPlan after;
  PlanComparison comparison;
  std::optional<std::int64_t> limit;  // hundredths of a percent

  [[nodiscard]] bool Fails(const CapacityChange& change) const {
    return limit.has_value() && LosesMoreThan(change, *limit);
  }
  [[nodiscard]] bool Fails() const {
    return std::any_of(comparison.capacity.begin(), comparison.capacity.end(),
                       [this](const CapacityChange& change) { return Fails(change); });
  }
  [[nodiscard]] const char* Verdict() const {
    if (Fails()) return "fails";
    return before.plan_id == after.plan_id ? "same" : "differs";
  }
};

std::string LimitText(std::int64_t limit) {
  return absl::StrFormat("limit -%d.%02d %%", limit / 100, limit % 100);
}

void ShowCapacity(const Console& console, const Difference& difference) {
  const std::vector<CapacityChange>& capacity = difference.comparison.capacity;
  TextTable table("l" + std::string(capacity.size(), 'r') + "l");
  std::vector<std::string> head = {"Requests of"};
  std::vector<std::string> before = {"  before"};
  std::vector<std::string> after = {"  after"};
  std::vector<std::string> change = {"  change"};
  std::string failing;
  for (const CapacityChange& row : capacity) {
    const std::string length = TokensText(row.context_tokens);
    head.push_back(length);
    before.push_back(Thousands(row.before.requests));
    after.push_back(Thousands(row.after.requests));
    change.push_back(ChangeText(row.before.requests, row.after.requests));
    if (difference.Fails(row)) failing += (failing.empty() ? "" : ", ") + length;
  }
  head.emplace_back("tokens, full-length");
  if (difference.limit.has_value() && failing.empty())
    change.push_back("ok (" + LimitText(*difference.limit) + ")");
  if (!failing.empty())
    change.push_back(absl::StrFormat("FAIL at %s (%s)", failing, LimitText(*difference.limit)));
  for (auto* row : {&head, &before, &after, &change}) table.Row(*row);
  console.out << table.Text(0);
}

// "—" where a plan has no such field; long numbers with commas.
std::string ValueText(const std::string& value) {
  if (value.empty()) return "—";
  const std::optional<std::int64_t> number = ParseInt(value);
  return number.has_value() ? Thousands(*number) : value;
}

// Values too long to stand in a row.
bool IsLong(const FieldChange& change) {
  return DisplayWidth(change.before) > kCellShown || DisplayWidth(change.after) > kCellShown;
}

void ShowFields(const Console& console, const PlanComparison& comparison) {
  TextTable because("llll", 2);
  TextTable bytes("llll", 2);
  std::string below;
  for (const FieldChange& change : comparison.fields) {
    if (change.kind != FieldKind::kBytes && IsLong(change)) {
      below += absl::StrFormat("  %s\n    %s\n    → %s\n", change.field, ValueText(change.before),
                               ValueText(change.after));
      continue;
    }
    if (change.kind != FieldKind::kBytes) {
      because.Row({change.field, ValueText(change.before), "→", ValueText(change.after)});
      continue;
    }
    const std::int64_t was = ParseInt(change.before).value_or(0);
    const std::int64_t is = ParseInt(change.after).value_or(0);
    bytes.Row({change.field, change.before.empty() ? "—" : BytesText(was), "→",
               change.after.empty() ? "—" : BytesText(is)});
  }
  const std::string reasons = because.Text(2) + below;
  const std::string owners = bytes.Text(2);
  if (!reasons.empty()) console.out << "\n" << Inked(console, Ink::kBold, "Because") << "\n" << reasons;
  if (!owners.empty())
    console.out << "\n" << Inked(console, Ink::kBold, "Bytes of each rank's arena") << "\n" << owners;
}

void Show(const Console& console, const Difference& difference) {
  const std::string before = difference.before.plan_id.substr(0, kIdShown);
  const std::string after = difference.after.plan_id.substr(0, kIdShown);
  console.out << Inked(console, difference.Fails() ? Ink::kBad : Ink::kGood, difference.Verdict())
              << absl::StrFormat("   plan %s → %s\n\n", before, after);
  ShowCapacity(console, difference);
  ShowFields(console, difference.comparison);
}

using Json = nlohmann::ordered_json;

Json OrNull(const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); }

Json RowJson(const CapacityRow& row) {
  return {{"requests", row.requests},
          {"guaranteed_requests", row.guaranteed_requests},
          {"bytes_per_request", row.bytes_per_request.value()}};
}

// Schema kvasir.diff/1 (docs/formats/plan_json.md).
std::string DiffJson(const Difference& difference) {
  Json capacity = Json::array();
  for (const CapacityChange& change : difference.comparison.capacity) {
    capacity.push_back({{"context_tokens", change.context_tokens},
                        {"before", RowJson(change.before)},
                        {"after", RowJson(change.after)},
                        {"fails", difference.Fails(change)}});
  }
  Json fields = Json::array();
  for (const FieldChange& change : difference.comparison.fields) {
    fields.push_back({{"kind", FieldKindName(change.kind)},
                      {"field", change.field},
                      {"before", OrNull(change.before)},
                      {"after", OrNull(change.after)}});
  }
  Json json = {{"schema", "kvasir.diff/1"},
               {"verdict", difference.Verdict()},
               {"before", {{"plan_id", difference.before.plan_id}}},
               {"after", {{"plan_id", difference.after.plan_id}}},
               {"limit_percent_hundredths", nullptr},
               {"capacity", capacity},
               {"fields", fields}};
  if (difference.limit.has_value()) json["limit_percent_hundredths"] = *difference.limit;
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

// The first word is a ruleset of the engine: what would be gained over its layouts?
int RunEngineDiff(const Console& console, const CommandLine& line, std::optional<std::int64_t> limit,
                  const std::string& form) {
  const absl::StatusOr<EngineDifference> difference =
      CompareWithEngine(console, line.words()[0], line.words()[1], limit);
  if (!difference.ok()) return BadUsage(console, "diff", difference.status());
  if (form == "json") {
    console.out << EngineDifferenceJson(*difference);
  } else {
    ShowEngineDifference(console, *difference);
  }
  return difference->Fails() ? kExitRefused : kExitOk;
}

}  // namespace

std::string DiffHelp() { return FlagsHelp(kFlags); }

int RunDiff(const Console& console, Args args) {
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(
      kFlags,
      {2, 2, "one of the two plans, each a file or the beginning of an id; the first may be vllm-2026-11,"},
      args);
  if (!line.ok()) return BadUsage(console, "diff", line.status());
  const std::string form = line->ValueOr("output", "table");
  const absl::Status output = CheckOutput(form, /*has_text=*/false);
  if (!output.ok()) return BadUsage(console, "diff", output);
  Difference difference;
  if (const std::optional<std::string> limit = line->Value("fail-on-capacity-drop")) {
    const absl::StatusOr<std::int64_t> parsed = ParsePercent(*limit);
    if (!parsed.ok()) return BadUsage(console, "diff", parsed.status());
    difference.limit = *parsed;
  }
  if (IsEngineRuleset(line->words()[0])) return RunEngineDiff(console, *line, difference.limit, form);
  if (IsEngineRuleset(line->words()[1])) {
    return BadUsage(
        console, "diff",
        absl::InvalidArgumentError(absl::StrFormat("%s stands first: kvasir diff %s %s", line->words()[1],
                                                   line->words()[1], line->words()[0])));
  }
  absl::StatusOr<StoredPlan> before = LoadPlan(console, line->words()[0]);
  if (!before.ok()) return BadUsage(console, "diff", before.status());
  absl::StatusOr<StoredPlan> after = LoadPlan(console, line->words()[1]);
  if (!after.ok()) return BadUsage(console, "diff", after.status());
  difference.comparison = ComparePlans(before->plan, after->plan);
  difference.before = *std::move(before);
  difference.after = *std::move(after);
  if (form == "json") {
    console.out << DiffJson(difference);
  } else {
    Show(console, difference);
  }
  return difference.Fails() ? kExitRefused : kExitOk;
}

}  // namespace kvasir::cli
