#include "planner/cli/show_engine.h"

#include <algorithm>
#include <ostream>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/typed_error.h"
#include "planner/cli/quantity.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::string TopologyText(const vllm::EngineConfig& config) {
  std::string text = absl::StrFormat("TP %d × DCP %d", config.tp, config.dcp);
  if (config.pp > 1) text += absl::StrFormat(" × PP %d", config.pp);
  return text;
}

std::string SubjectText(const EngineAsk& ask) {
  if (!ask.launch.has_value()) return absl::StrFormat("%d layers", ask.engine_case.layers.size());
  std::string text = ask.launch->target.name;
  if (!ask.question.has_value()) return text;
  const EngineSettings& settings = ask.question->settings;
  if (settings.spec_method.empty()) return text;
  if (ask.launch->draft.has_value()) text += " + " + ask.launch->draft->name;
  return text + absl::StrFormat(" (%s, %d tokens)", settings.spec_method, settings.spec_tokens);
}

std::string AboutText(const EngineAsk& ask, const EngineAnswer& answer) {
  return absl::StrFormat("   %s · %s · %s\n\n", std::string(vllm::EngineVersionName(ask.release.version())),
                         SubjectText(ask), TopologyText(answer.engine_case.config));
}

void ShowHead(const Console& console, const EngineAsk& ask, const EngineAnswer& answer) {
  const std::string about = AboutText(ask, answer);
  switch (answer.verdict) {
    case EngineVerdict::kFits:
      console.out << Inked(console, Ink::kGood, "fits") << about;
      break;
    case EngineVerdict::kDoesNotFit:
      console.out << Inked(console, Ink::kBad, answer.fits_most ? "may not fit" : "does not fit") << about;
      break;
    case EngineVerdict::kFails:
      console.out << Inked(console, Ink::kBad, "fails") << about;
      break;
  }
}

void ShowFailure(const Console& console, const EngineAsk& ask, const EngineAnswer& answer) {
  if (!answer.plan.failure.has_value()) return;
  const vllm::EngineFailure& failure = *answer.plan.failure;
  console.out << absl::StrFormat("The engine raises %s\n  %s\n",
                                 std::string(vllm::EngineErrorKindName(failure.kind)), failure.message);
  if (answer.verdict == EngineVerdict::kDoesNotFit) {
    TextTable table("ll");
    table.Row({"Needed",
               absl::StrFormat("%s per rank for one request of %s tokens", BytesText(answer.needed_bytes()),
                               Thousands(answer.engine_case.config.max_model_len))});
    const std::int64_t given = std::max<std::int64_t>(answer.given_bytes(), 0);
    table.Row({"Given", BytesText(given) + " (" + ask.memory.said + ")"});
    if (answer.needed_bytes() > given) table.Row({"Short by", BytesText(answer.needed_bytes() - given)});
    const std::int64_t longest = answer.longest_tokens();
    table.Row({"Longest that fits", longest > 0 ? Thousands(longest) + " tokens" : "none"});
    if (longest > 0) table.Row({"Try", absl::StrFormat("--max-model-len %d", longest)});
    console.out << table.Text(2);
  }
  console.out << "\n";
}

void ShowBudget(const Console& console, const EngineMemory& memory) {
  if (!memory.budget.has_value()) return;
  const EngineBudget& budget = *memory.budget;
  const auto range = [](const BytesRange& bytes) {
    return absl::StrFormat("%.2f to %.2f GiB", static_cast<double>(bytes.least) / kGiB,
                           static_cast<double>(bytes.most) / kGiB);
  };
  TextTable table("lrl");
  table.Row({"Memory per rank", range(budget.given), budget.given.basis});
  for (const BudgetLine& line : budget.taken)
    table.Row({"- " + line.what, range(line.bytes), line.bytes.basis});
  table.Row({"= cache", range(budget.cache), "decided by the engine's profile run; --kv-memory fixes it"});
  console.out << table.Text(0) << "\n";
}

void ShowLog(const Console& console, const EngineAnswer& answer) {
  if (answer.log_lines.empty()) return;
  console.out << (answer.exact ? "The engine will log\n" : "The engine will log figures between\n");
  for (const std::string& line : answer.log_lines) console.out << "  " << line << "\n";
  console.out << "\n";
}

void ShowGroups(const Console& console, const EngineAnswer& answer) {
  if (answer.plan.groups.empty()) return;
  TextTable table("rrlrrl");
  table.Row({"Group", "Layers", "Kind", "Block", "Page", "First layer"});
  int number = 0;
  for (const vllm::EngineGroup& group : answer.plan.groups) {
    const std::string first =
        group.layers.empty() ? ""
                             : answer.engine_case.layers[static_cast<std::size_t>(group.layers.front())].name;
    table.Row({std::to_string(number++), std::to_string(group.layers.size()), GroupKindText(answer, group),
               Thousands(GroupBlockTokens(answer, group)) + " tokens",
               Thousands(GroupPageBytes(answer, group)) + " B", first});
  }
  console.out << table.Text(0);
  if (answer.rule.has_value()) {
    const std::string blocks =
        answer.exact || answer.least.num_blocks == answer.most.num_blocks
            ? Thousands(answer.least.num_blocks)
            : Thousands(answer.least.num_blocks) + " to " + Thousands(answer.most.num_blocks);
    console.out << absl::StrFormat("%s blocks; one request of %s tokens takes %s\n", blocks,
                                   Thousands(answer.rule->max_model_len),
                                   Thousands(answer.rule->blocks_per_request));
  }
  if (answer.padding_layers() > 0 && answer.padded_layers() > 0) {
    console.out << absl::StrFormat("%d padding layers (%s)\n", answer.padding_layers(),
                                   PercentText(answer.padding_layers(), answer.padded_layers()));
  }
  console.out << "\n";
}

void ShowList(const Console& console, std::string_view head, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  console.out << head << "\n";
  for (const std::string& line : lines) console.out << "  " << line << "\n";
  console.out << "\n";
}

std::vector<std::string> UnknownLines(const LaunchCommand& command) {
  std::vector<std::string> lines;
  lines.reserve(command.unknown.size());
  for (const UnknownFlag& flag : command.unknown) {
    lines.push_back(flag.nearest.empty() ? flag.word : flag.word + "   did you mean " + flag.nearest + "?");
  }
  return lines;
}

// What optimised Python would do concerns those who run it; explicit specs come from people who look into
// that.
std::vector<std::string> WarningLines(const EngineAsk& ask, const vllm::EnginePlan& plan) {
  std::vector<std::string> lines;
  const bool optimised = !ask.launch.has_value() || ask.launch->options.optimized_python.value_or(false);
  for (const vllm::EngineWarning& warning : plan.warnings) {
    if (!optimised && warning.about.substr(0, 6) == "python") continue;
    if (!optimised && warning.about == "PYTHONHASHSEED") continue;
    lines.push_back(warning.about + ": " + warning.message +
                    (warning.address.empty() ? "" : "; " + warning.address));
  }
  if (ask.question.has_value()) {
    const std::vector<std::string>& more = ask.question->settings.warnings;
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

// What was assumed, read and passed over; the same for a plan and for a verdict alone.
void ShowRemarks(const Console& console, const EngineAsk& ask, const vllm::EnginePlan& plan) {
  ShowList(console, "Warnings", WarningLines(ask, plan));
  if (ask.question.has_value()) ShowList(console, "Assumed", ask.question->settings.assumed);
  ShowList(console, "Notes", ask.notes);
  ShowList(console, "Read", ask.command.notes);
  ShowList(console, "Unknown flags: not used, and the engine may refuse them", UnknownLines(ask.command));
  ShowList(console, "Not about the cache", ask.command.not_about_cache);
}

void ShowAcceptedInstead(const Console& console, const EngineAsk& ask) {
  ShowList(console, "Accepted instead: any one of", AcceptedInsteadOf(ask));
}

}  // namespace

void ShowEngine(const Console& console, const EngineAsk& ask, const EngineAnswer& answer) {
  ShowHead(console, ask, answer);
  ShowFailure(console, ask, answer);
  ShowBudget(console, ask.memory);
  ShowLog(console, answer);
  ShowGroups(console, answer);
  ShowRemarks(console, ask, answer.plan);
}

void ShowEngineRefusal(const Console& console, const EngineAsk& ask, const absl::Status& status) {
  const TypedError error = ErrorOf(status);
  console.out << Inked(console, Ink::kBad, "refused")
              << absl::StrFormat("   %s · %s\n\n  %s\n",
                                 std::string(vllm::EngineVersionName(ask.release.version())), error.field,
                                 error.message)
              << "\n";
  ShowAcceptedInstead(console, ask);
  ShowList(console, "Unknown flags: not used, and the engine may refuse them", UnknownLines(ask.command));
}

void ShowEngineVerdict(const Console& console, const EngineAsk& ask, const EngineAnswer& answer) {
  const bool valid = answer.verdict == EngineVerdict::kFits;
  console.out << Inked(console, valid ? Ink::kGood : Ink::kBad, valid ? "valid" : "refused")
              << AboutText(ask, answer);
  if (!valid) {
    const vllm::EngineFailure& failure = *answer.plan.failure;
    console.out << absl::StrFormat("The engine raises %s\n  %s\n\n",
                                   std::string(vllm::EngineErrorKindName(failure.kind)), failure.message);
    ShowAcceptedInstead(console, ask);
  }
  ShowRemarks(console, ask, answer.plan);
}

}  // namespace kvasir::cli
