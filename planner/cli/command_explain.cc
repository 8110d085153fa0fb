// kvasir explain: one sentence for each decision of a plan.
#include <algorithm>
#include <array>
#include <optional>
#include <ostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/insert_sorted.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/plan_json.h"
#include "planner/cli/plan_store.h"
#include "planner/cli/stored_question.h"
#include "planner/cli/text_table.h"
#include "planner/core/explain.h"
#include "planner/questions/explain_question.h"

namespace kvasir::cli {
namespace {

constexpr std::array kFlags = {
    Flag{"topic", "TOPIC", "only one of group, size, rollback, capacity, bytes, graph, remedy"},
    Flag{"output", "FORM", "table, json or text: the plan's canonical text (table)"},
};

constexpr std::array kTopics = {ExplainTopic::kGroup,    ExplainTopic::kSize,  ExplainTopic::kRollback,
                                ExplainTopic::kCapacity, ExplainTopic::kBytes, ExplainTopic::kGraph,
                                ExplainTopic::kRemedy};

absl::Status CheckTopic(const CommandLine& line) {
  const std::string topic = line.ValueOr("topic", "");
  const bool known = std::any_of(kTopics.begin(), kTopics.end(),
                                 [&topic](ExplainTopic t) { return ExplainTopicName(t) == topic; });
  if (known || !line.Has("topic")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--topic %s: expected group, size, rollback, capacity, bytes, graph or remedy", topic));
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

// What the question adds, each line after those of its topic.
void AddQuestionLines(const PlanQuestion& question, const StoredPlan& plan,
                      const std::vector<Remedy>& remedies, std::vector<ExplainLine>& lines) {
  const auto add = [&lines](const std::vector<ExplainLine>& more) {
    for (const ExplainLine& line : more) {
      InsertSorted(lines, line, [](const ExplainLine& a, const ExplainLine& b) { return a.topic < b.topic; });
    }
  };
  add(ExplainWeights(question));
  add(ExplainRemedies(plan.plan, remedies));
}

// Why there are no remedies to read.
void ShowNoRemedy(const Console& console, const absl::Status& question) {
  console.out << "\n" << Inked(console, Ink::kBold, "remedy") << "\n";
  if (absl::IsDataLoss(question)) {
    console.out << "  " << std::string(question.message()) << "\n";
  } else if (question.ok()) {
    console.out << "  no other context parallelism, cache type, rollback or draft length admits more\n";
  } else {
    console.out
        << "  the plan's question is not stored here: `kvasir plan` stores it, and explain then says what\n"
        << "  each single change of it would give\n";
  }
}

}  // namespace

std::string ExplainHelp() { return FlagsHelp(kFlags); }

int RunExplain(const Console& console, Args args) {
  const absl::StatusOr<CommandLine> line =
      CommandLine::Parse(kFlags, {1, 1, "the plan, a file or the beginning of an id,"}, args);
  if (!line.ok()) return BadUsage(console, "explain", line.status());
  const std::string form = line->ValueOr("output", "table");
  absl::Status usage = CheckOutput(form, /*has_text=*/true);
  usage.Update(CheckTopic(*line));
  if (!usage.ok()) return BadUsage(console, "explain", usage);
  const absl::StatusOr<StoredPlan> plan = LoadPlan(console, line->words()[0]);
  if (!plan.ok()) return BadUsage(console, "explain", plan.status());

  std::vector<ExplainLine> lines = ExplainPlan(plan->plan);
  std::optional<std::vector<Remedy>> remedies;
  const absl::StatusOr<PlanQuestion> question = LoadQuestion(console, *plan);
  if (question.ok()) {
    remedies = RankRemedies(*question, plan->plan);
    AddQuestionLines(*question, *plan, *remedies, lines);
  }
  if (line->Has("topic")) {
    const std::string topic = line->ValueOr("topic", "");
    std::erase_if(lines, [&topic](const ExplainLine& l) { return ExplainTopicName(l.topic) != topic; });
  }
  if (form == "json") {
    console.out << ExplainJson(plan->plan_id, lines, remedies);
  } else if (form == "text") {
    console.out << plan->text;
  } else {
    ShowLines(console, *plan, lines);
    const bool asked = line->ValueOr("topic", "remedy") == ExplainTopicName(ExplainTopic::kRemedy);
    if (asked && (!remedies.has_value() || remedies->empty())) ShowNoRemedy(console, question.status());
  }
  return kExitOk;
}

}  // namespace kvasir::cli
