// kvasir plan: plans in this process and stores the plan.
#include <array>
#include <optional>
#include <ostream>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/engine_line.h"
#include "planner/cli/keep_plan.h"
#include "planner/cli/plan_json.h"
#include "planner/cli/plan_question.h"
#include "planner/cli/remedy_search.h"
#include "planner/cli/show_plan.h"
#include "planner/cli/show_refusals.h"
#include "planner/request/launch_split.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir::cli {
namespace {

constexpr std::array kOwnFlags = {
    Flag{"server", "HOST:PORT", "ask a planner service instead of planning here"},
    Flag{"trace", "", "print what each stage made, on the error stream"},
    Flag{"no-save", "", "do not store the plan"},
    Flag{"emit", "vllm", "print the engine's flags for this question, and plan nothing"},
};

std::vector<Flag> AllFlags() {
  std::vector<Flag> flags(PlanFlags().begin(), PlanFlags().end());
  flags.insert(flags.end(), EngineFlags().begin(), EngineFlags().end());
  flags.insert(flags.end(), kOwnFlags.begin(), kOwnFlags.end());
  return flags;
}

// The same question with each other way to take rejected tokens back, where there is a state to roll back.
std::vector<Alternative> FindAlternatives(const PlanQuestion& question, const PlanOutcome& outcome) {
  std::vector<Alternative> out;
  const auto* planned = std::get_if<Planned>(&outcome);
  if (planned == nullptr) return out;
  for (const RollbackOption& option : planned->report.rollback_options) {
    if (option.chosen || !option.possible) continue;
    PlanQuestion other = question;
    other.options.state_rollback = StateRollbackName(option.rollback);
    const PlanOutcome answer = MakePlan(RequestOf(other));
    if (const auto* fits = std::get_if<Planned>(&answer)) {
      out.push_back({"with " + other.options.state_rollback, fits->report.capacity});
    }
  }
  if (std::optional<Alternative> engine = EngineLine(question, planned->report.capacity)) {
    out.push_back(*std::move(engine));
  }
  return out;
}

void Show(const Console& console, const PlanQuestion& question, const PlanOutcome& outcome, bool kept,
          const std::string& form) {
  const auto* planned = std::get_if<Planned>(&outcome);
  if (form == "json") {
    Extras extras{FindAlternatives(question, outcome), {}};
    if (const auto* refused = std::get_if<Refusals>(&outcome)) {
      extras.accepted_instead = FindRemedies(question, refused->refusals);
    }
    console.out << OutcomeJson(RequestOf(question), outcome, extras);
  } else if (planned != nullptr && form == "text") {
    console.out << planned->text;
  } else if (planned != nullptr) {
    ShowPlan(console, *planned, FindAlternatives(question, outcome), kept);
  } else if (const auto* short_of = std::get_if<DoesNotFit>(&outcome)) {
    ShowDoesNotFit(console, *short_of);
  } else {
    ShowRefusals(console, question, std::get<Refusals>(outcome));
  }
}

int ExitCodeOf(const PlanOutcome& outcome) {
  if (std::holds_alternative<Planned>(outcome)) return kExitOk;
  return std::holds_alternative<DoesNotFit>(outcome) ? kExitDoesNotFit : kExitRefused;
}

}  // namespace

std::string PlanHelp() { return FlagsHelp(AllFlags()); }

int RunPlan(const Console& console, Args args) {
  const std::vector<Flag> flags = AllFlags();
  const absl::StatusOr<CommandLine> line =
      CommandLine::Parse(flags, {.min = 0, .max = kLaunchWordsMax}, args);
  if (!line.ok()) return BadUsage(console, "plan", line.status());
  const absl::Status words = CheckLaunchWords(*line, args);
  if (!words.ok()) return BadUsage(console, "plan", words);
  const std::string form = line->ValueOr("output", "table");
  const absl::Status output = CheckOutput(form, /*has_text=*/true);
  if (!output.ok()) return BadUsage(console, "plan", output);
  if (line->Has("emit")) return RunEmitVllm(console, *line);
  if (AsksEngine(*line)) return RunEnginePlan(console, *line, form);
  const absl::StatusOr<PlanQuestion> question = ReadQuestion(*line, /*needs_memory=*/true);
  if (!question.ok()) return BadUsage(console, "plan", question.status());

  TraceSink trace;
  if (line->Has("trace")) {
    trace = [&console](std::string_view stage, std::string_view text) {
      console.err << "== " << stage << "\n" << text << "\n";
    };
  }
  PlanOutcome outcome = MakePlan(RequestOf(*question), trace);
  if (auto* misfit = std::get_if<DoesNotFit>(&outcome)) AddFitRemedies(*question, *misfit);
  const bool kept = KeepPlan(console, *line, *question, outcome);
  Show(console, *question, outcome, kept, form);
  return ExitCodeOf(outcome);
}

}  // namespace kvasir::cli
