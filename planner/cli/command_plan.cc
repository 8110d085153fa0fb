// kvasir plan: plans in this process and stores the plan.
#include <array>
#include <ostream>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/find_alternatives.h"
#include "planner/cli/keep_plan.h"
#include "planner/cli/page/write_page.h"
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
    Flag{"html", "FILE", "also write the answer as a page that a browser shows"},
    Flag{"emit", "vllm", "print the engine's flags for this question, and plan nothing"},
};

std::vector<Flag> AllFlags() {
  std::vector<Flag> flags(PlanFlags().begin(), PlanFlags().end());
  flags.insert(flags.end(), EngineFlags().begin(), EngineFlags().end());
  flags.insert(flags.end(), kOwnFlags.begin(), kOwnFlags.end());
  return flags;
}

// What is found out beside the answer itself: how other choices would do.
Extras ExtrasOf(const PlanQuestion& question, const PlanOutcome& outcome) {
  Extras extras;
  if (const auto* planned = std::get_if<Planned>(&outcome)) {
    extras.alternatives = FindAlternatives(question, planned->report);
  } else if (const auto* refused = std::get_if<Refusals>(&outcome)) {
    extras.accepted_instead = FindRemedies(question, refused->refusals);
  }
  return extras;
}

void Show(const Console& to, const PlanQuestion& question, const PlanOutcome& outcome, bool kept,
          const std::string& form) {
  const auto* planned = std::get_if<Planned>(&outcome);
  // Whoever wants the text wants a plan, and finds no complaint in its place.
  const Console console = form == "text" && planned == nullptr ? Complaining(to) : to;
  if (form == "json") {
    console.out << OutcomeJson(RequestOf(question), outcome, ExtrasOf(question, outcome));
  } else if (planned != nullptr && form == "text") {
    console.out << planned->text;
  } else if (planned != nullptr) {
    ShowPlan(console, *planned, FindAlternatives(question, planned->report), kept);
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
  const absl::Status page = CheckPageFlag(*line);
  if (!page.ok()) return BadUsage(console, "plan", page);
  if (line->Has("emit")) return RunEmitVllm(console, *line);
  if (AsksEngine(*line)) return RunEnginePlan(console, *line, form);
  const absl::Status native = CheckNativeFlags(*line);
  if (!native.ok()) return BadUsage(console, "plan", native);
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
  if (line->Has("html")) {
    const absl::Status written = WritePage(*line, *question, outcome, ExtrasOf(*question, outcome));
    if (!written.ok()) return BadUsage(console, "plan", written);
  }
  const bool kept = KeepPlan(console, *line, *question, outcome);
  Show(console, *question, outcome, kept, form);
  if (line->Has("html") && form == "table") console.out << "Page     " << line->ValueOr("html", "") << "\n";
  return ExitCodeOf(outcome);
}

}  // namespace kvasir::cli
