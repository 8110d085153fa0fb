// kvasir validate: the rules alone.
#include <ostream>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/plan_json.h"
#include "planner/cli/plan_question.h"
#include "planner/cli/remedy_search.h"
#include "planner/cli/show_refusals.h"
#include "planner/core/canonical.h"
#include "planner/core/validated.h"
#include "planner/request/launch_split.h"

namespace kvasir::cli {

namespace {

constexpr Flag kStrictFlags{"strict-flags", "", "refuse a launch command with flags that are not known"};

std::vector<Flag> AllFlags() {
  std::vector<Flag> flags(PlanFlags().begin(), PlanFlags().end());
  flags.insert(flags.end(), EngineFlags().begin(), EngineFlags().end());
  flags.push_back(kStrictFlags);
  return flags;
}

}  // namespace

std::string ValidateHelp() { return FlagsHelp(AllFlags()); }

int RunValidate(const Console& console, Args args) {
  const std::vector<Flag> flags = AllFlags();
  const absl::StatusOr<CommandLine> line =
      CommandLine::Parse(flags, {.min = 0, .max = kLaunchWordsMax}, args);
  if (!line.ok()) return BadUsage(console, "validate", line.status());
  const absl::Status words = CheckLaunchWords(*line, args);
  if (!words.ok()) return BadUsage(console, "validate", words);
  const std::string form = line->ValueOr("output", "table");
  const absl::Status output = CheckOutput(form, /*has_text=*/false);
  if (!output.ok()) return BadUsage(console, "validate", output);
  if (AsksEngine(*line)) return RunEngineValidate(console, *line, form);
  const absl::Status native = CheckNativeFlags(*line);
  if (!native.ok()) return BadUsage(console, "validate", native);
  const absl::StatusOr<PlanQuestion> question = ReadQuestion(*line, /*needs_memory=*/false);
  if (!question.ok()) return BadUsage(console, "validate", question.status());

  const std::variant<Validated, Refusals> answer = Validate(Canonicalize(RequestOf(*question)));
  const auto* refused = std::get_if<Refusals>(&answer);
  if (form == "json") {
    const std::vector<Refusal> refusals = refused == nullptr ? std::vector<Refusal>() : refused->refusals;
    console.out << ValidationJson(refusals, {{}, FindRemedies(*question, refusals)});
  } else if (refused != nullptr) {
    ShowRefusals(console, *question, *refused);
  } else {
    console.out << Inked(console, Ink::kGood, "valid")
                << absl::StrFormat("   %d layers, no rule is broken\n",
                                   std::get<Validated>(answer).request().layers.size());
  }
  return refused == nullptr ? kExitOk : kExitRefused;
}

}  // namespace kvasir::cli
