#include "planner/cli/engine_diff.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/plan_store.h"
#include "planner/cli/quantity.h"
#include "planner/cli/stored_question.h"
#include "planner/cli/text_table.h"
#include "planner/core/capacity.h"
#include "planner/core/explain.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kIdShown = 12;
constexpr std::array kModes = {EngineMode::kMerged, EngineMode::kApart, EngineMode::kRecoverSsm};

std::string_view ModeText(EngineMode mode) {
  switch (mode) {
    case EngineMode::kMerged:
      return "as it groups";
    case EngineMode::kApart:
      return "draft apart";
    case EngineMode::kRecoverSsm:
      break;
  }
  return "with RecoverSSM";
}

const EngineCount* CountOf(const EngineCounts& length, EngineMode mode) {
  const auto found = std::find_if(length.counts.begin(), length.counts.end(),
                                  [mode](const EngineCount& count) { return count.mode == mode; });
  return found == length.counts.end() ? nullptr : &*found;
}

CapacityRow BestOf(const EngineCounts& length) {
  CapacityRow best;
  best.context_tokens = length.context_tokens;
  for (const EngineCount& count : length.counts) {
    if (count.requests <= best.requests) continue;
    best.requests = count.requests;
    best.bytes_per_request = Bytes(count.bytes_per_request);
  }
  return best;
}

}  // namespace

bool EngineDifference::Fails() const {
  if (limit.has_value() && !engine.why_none.empty()) return true;
  return std::any_of(capacity.begin(), capacity.end(),
                     [this](const CapacityChange& change) { return Fails(change); });
}

absl::StatusOr<EngineDifference> CompareWithEngine(const Console& console, std::string_view ruleset,
                                                   const std::string& word,
                                                   std::optional<std::int64_t> limit) {
  EngineDifference difference;
  difference.ruleset = ruleset;
  difference.limit = limit;
  KVASIR_ASSIGN_OR_RETURN(const vllm::EngineVersion version, EngineVersionOf(ruleset));
  KVASIR_ASSIGN_OR_RETURN(const StoredPlan stored, LoadPlan(console, word));
  KVASIR_ASSIGN_OR_RETURN(const PlanQuestion question, LoadQuestion(console, stored));
  difference.plan_id = stored.plan_id;
  difference.rollback = StateRollbackName(stored.plan.rollback);
  difference.engine = CountUnderEngine(question, version, ExplainedContexts(stored.plan));
  for (const EngineCounts& length : difference.engine.lengths) {
    difference.capacity.push_back({.context_tokens = length.context_tokens,
                                   .before = BestOf(length),
                                   .after = CapacityAt(stored.plan, length.context_tokens)});
  }
  return difference;
}

void ShowEngineDifference(const Console& console, const EngineDifference& difference) {
  const bool fails = difference.Fails();
  console.out << Inked(console, fails ? Ink::kBad : Ink::kGood, fails ? "fails" : "differs")
              << absl::StrFormat("   %s → plan %s\n\n", difference.ruleset,
                                 difference.plan_id.substr(0, kIdShown));
  if (difference.capacity.empty()) {
    console.out << absl::StrFormat("  No figure of the engine: %s.\n", difference.engine.why_none);
    return;
  }
  TextTable table("l" + std::string(difference.capacity.size(), 'r') + "l");
  std::vector<std::string> head = {"Requests of"};
  for (const CapacityChange& row : difference.capacity) head.push_back(TokensText(row.context_tokens));
  head.emplace_back("tokens, full-length");
  table.Row(head);
  for (const EngineMode mode : kModes) {
    std::vector<std::string> cells = {absl::StrFormat("  vLLM, %s", ModeText(mode))};
    bool any = false;
    for (const EngineCounts& length : difference.engine.lengths) {
      const EngineCount* count = CountOf(length, mode);
      any = any || count != nullptr;
      cells.push_back(count == nullptr ? "—" : Thousands(count->requests));
    }
    if (any || mode == EngineMode::kMerged) table.Row(cells);
  }
  std::vector<std::string> plan = {absl::StrFormat("  plan, rollback %s", difference.rollback)};
  std::vector<std::string> change = {"  change"};
  std::string failing;
  for (const CapacityChange& row : difference.capacity) {
    plan.push_back(Thousands(row.after.requests));
    change.push_back(ChangeText(row.before.requests, row.after.requests));
    if (difference.Fails(row)) failing += (failing.empty() ? "" : ", ") + TokensText(row.context_tokens);
  }
  change.push_back(failing.empty() ? "against its best" : "against its best; FAIL at " + failing);
  table.Row(plan);
  table.Row(change);
  console.out << table.Text(0);
}

std::string EngineDifferenceJson(const EngineDifference& difference) {
  using Json = nlohmann::ordered_json;
  Json capacity = Json::array();
  for (std::size_t i = 0; i < difference.capacity.size(); ++i) {
    const CapacityChange& row = difference.capacity[i];
    Json engine = Json::array();
    for (const EngineCount& count : difference.engine.lengths[i].counts) {
      engine.push_back({{"mode", EngineModeName(count.mode)},
                        {"requests", count.requests},
                        {"bytes_per_request", count.bytes_per_request}});
    }
    capacity.push_back({{"context_tokens", row.context_tokens},
                        {"engine", engine},
                        {"requests", row.after.requests},
                        {"bytes_per_request", row.after.bytes_per_request.value()},
                        {"fails", difference.Fails(row)}});
  }
  Json json = {{"schema", "kvasir.engine_diff/1"},
               {"verdict", difference.Fails() ? "fails" : "differs"},
               {"ruleset", difference.ruleset},
               {"plan_id", difference.plan_id},
               {"state_rollback", difference.rollback},
               {"limit_percent_hundredths", nullptr},
               {"capacity", capacity},
               {"why_none", nullptr}};
  if (difference.limit.has_value()) json["limit_percent_hundredths"] = *difference.limit;
  if (!difference.engine.why_none.empty()) json["why_none"] = difference.engine.why_none;
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvasir::cli
