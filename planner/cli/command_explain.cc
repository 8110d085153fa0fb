// kvasir explain: one sentence for each decision of a plan.
#include <algorithm>
#include <array>
#include <ostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/plan_json.h"
#include "planner/cli/plan_store.h"
#include "planner/cli/text_table.h"
#include "planner/core/explain.h"

namespace kvasir::cli {
namespace {

constexpr std::array kFlags = {
    Flag{"topic", "TOPIC", "only one of group, size, rollback, capacity, bytes, graph"},
    Flag{"output", "FORM", "table, json or text: the plan's canonical text (table)"},
};

constexpr std::array kTopics = {ExplainTopic::kGroup,    ExplainTopic::kSize,  ExplainTopic::kRollback,
                                ExplainTopic::kCapacity, ExplainTopic::kBytes, ExplainTopic::kGraph};

absl::Status CheckTopic(const CommandLine& line) {
  const std::string topic = line.ValueOr("topic", "");
  const bool known = std::any_of(kTopics.begin(), kTopics.end(),
                                 [&topic](ExplainTopic t) { return ExplainTopicName(t) == topic; });
  if (known || !line.Has("topic")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--topic %s: expected group, size, rollback, capacity, bytes or graph", topic));
}

void ShowLines(const Console& console, const StoredPlan& plan, const std::vector<ExplainLine>& lines) {
  console.out << absl::StrFormat("plan %s   %s\n", plan.plan_id.substr(0, 12), plan.plan.ruleset);
  for (const ExplainTopic topic : kTopics) {
    TextTable table("ll");
    for (const ExplainLine& line : lines) {
      if (line.topic == topic) table.Row({line.subject, line.text});
    }
    const std::string text = table.Text(2);
    if (!text.empty()) {
      console.out << "\n" << Inked(console, Ink::kBold, ExplainTopicName(topic)) << "\n" << text;
    }
  }
}

}  // namespace

std::string ExplainHelp() { return FlagsHelp(kFlags); }

int RunExplain(const Console& console, Args args) {
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(kFlags, {1, 1}, args);
  if (!line.ok()) return BadUsage(console, "explain", line.status());
  const std::string form = line->ValueOr("output", "table");
  absl::Status usage = CheckOutput(form, /*has_text=*/true);
  usage.Update(CheckTopic(*line));
  if (!usage.ok()) return BadUsage(console, "explain", usage);
  const absl::StatusOr<StoredPlan> plan = LoadPlan(console, line->words()[0]);
  if (!plan.ok()) return BadUsage(console, "explain", plan.status());

  std::vector<ExplainLine> lines = ExplainPlan(plan->plan);
  if (line->Has("topic")) {
    const std::string topic = line->ValueOr("topic", "");
    std::erase_if(lines, [&topic](const ExplainLine& l) { return ExplainTopicName(l.topic) != topic; });
  }
  if (form == "json") {
    console.out << ExplainJson(plan->plan_id, lines);
  } else if (form == "text") {
    console.out << plan->text;
  } else {
    ShowLines(console, *plan, lines);
  }
  return kExitOk;
}

}  // namespace kvasir::cli
