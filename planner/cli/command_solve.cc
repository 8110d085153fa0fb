// kvasir solve: the largest context, the most requests, the fewest ranks or the least memory, as a plan.
#include <algorithm>
#include <array>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/keep_plan.h"
#include "planner/cli/plan_question.h"
#include "planner/cli/show_solution.h"
#include "planner/questions/solve.h"
#include "planner/request/launch_split.h"

namespace kvasir::cli {
namespace {

constexpr std::int64_t kGpusTried = 64;

constexpr std::array kOwnFlags = {
    Flag{"requests", "N", "requests of the context that must be admitted at a time (1)"},
    Flag{"gpu", "NAME", "the device, like h200: what it leaves for caches, counted at its least"},
    Flag{"gpus", "N", "solve ranks: how many devices there are at most (64)"},
    Flag{"no-save", "", "do not store the plan"},
};
// Of `plan`; the question has its own words for them, or none.
constexpr std::array<std::string_view, 2> kNotHere = {"min-requests", "ruleset"};

std::vector<Flag> AllFlags() {
  std::vector<Flag> flags;
  for (const Flag& flag : PlanFlags()) {
    if (std::find(kNotHere.begin(), kNotHere.end(), flag.name) == kNotHere.end()) flags.push_back(flag);
  }
  flags.insert(flags.end(), kOwnFlags.begin(), kOwnFlags.end());
  return flags;
}

absl::StatusOr<SolveGoal> GoalOf(const std::string& word) {
  if (const std::optional<SolveGoal> goal = ParseSolveGoal(word)) return *goal;
  return absl::InvalidArgumentError(
      absl::StrFormat("\"%s\": expected what is looked for: context, requests, ranks or memory", word));
}

// Flags that the goal leaves open.
absl::Status CheckGoalFlags(const CommandLine& line, SolveGoal goal) {
  const auto contradicts = [&](std::string_view flag) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--%s is given and is what solve %s looks for; leave one of them away", flag, SolveGoalName(goal)));
  };
  if (goal == SolveGoal::kContext && line.Has("context")) return contradicts("context");
  if (goal == SolveGoal::kRequests && line.Has("requests")) return contradicts("requests");
  if (goal == SolveGoal::kRanks && line.Has("tp")) return contradicts("tp");
  if (goal == SolveGoal::kMemory && line.Has("kv-memory")) return contradicts("kv-memory");
  if (goal == SolveGoal::kMemory && line.Has("gpu")) return contradicts("gpu");
  if (goal != SolveGoal::kRanks && line.Has("gpus"))
    return absl::InvalidArgumentError("--gpus is for solve ranks; here --tp says how many there are");
  if (line.Has("gpu") && line.Has("kv-memory"))
    return absl::InvalidArgumentError("--gpu and --kv-memory both say how much memory there is; give one");
  return absl::OkStatus();
}

absl::StatusOr<SolveQuestion> ReadSolve(const CommandLine& line) {
  SolveQuestion question;
  KVASIR_ASSIGN_OR_RETURN(question.goal, GoalOf(line.words()[0]));
  KVASIR_RETURN_IF_ERROR(CheckGoalFlags(line, question.goal));
  const bool needs_memory = question.goal != SolveGoal::kMemory && !line.Has("gpu");
  KVASIR_ASSIGN_OR_RETURN(question.base, ReadQuestion(line, needs_memory));
  if (const std::optional<std::string> gpu = line.Value("gpu")) {
    const absl::StatusOr<GpuRow> row = FindGpu(*gpu);
    if (!row.ok()) return absl::InvalidArgumentError("--gpu: " + std::string(row.status().message()));
    question.device = *row;
  }
  KVASIR_ASSIGN_OR_RETURN(question.ranks_max, line.IntOr("gpus", kGpusTried));
  if (question.ranks_max < 1 || question.ranks_max > kRanksMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--gpus %d: expected 1 to %d", question.ranks_max, kRanksMax));
  }
  question.dcp_is_said = line.Has("dcp");
  question.batch_is_said = line.Has("max-requests");
  return question;
}

// As a shell reads them again.
std::string ModelFlags(const CommandLine& line) {
  std::vector<std::string> words = {"--target", line.ValueOr("target", "")};
  if (const std::optional<std::string> draft = line.Value("draft")) {
    words.emplace_back("--draft");
    words.push_back(*draft);
  }
  return JoinCommand(words);
}

int ExitCodeOf(const SolveAnswer& answer) {
  if (answer.solution.has_value()) return kExitOk;
  return answer.why_not.refusals.empty() ? kExitDoesNotFit : kExitRefused;
}

}  // namespace

std::string SolveHelp() { return FlagsHelp(AllFlags()); }

int RunSolve(const Console& console, Args args) {
  const std::vector<Flag> flags = AllFlags();
  const absl::StatusOr<CommandLine> line =
      CommandLine::Parse(flags, {1, 1, "what is looked for, context, requests, ranks or memory,"}, args);
  if (!line.ok()) return BadUsage(console, "solve", line.status());
  const std::string form = line->ValueOr("output", "table");
  const absl::Status output = CheckOutput(form, /*has_text=*/true);
  if (!output.ok()) return BadUsage(console, "solve", output);
  const absl::StatusOr<SolveQuestion> question = ReadSolve(*line);
  if (!question.ok()) return BadUsage(console, "solve", question.status());
  const SolveAnswer answer = Solve(*question);
  bool kept = false;
  if (answer.solution.has_value()) {
    PlanQuestion asked = question->base;
    asked.options = answer.solution->options;  // with nothing left open
    kept = KeepPlan(console, *line, asked, PlanOutcome(answer.solution->planned));
  }
  if (form == "json") {
    console.out << SolutionJson(*question, answer);
  } else if (form == "text" && answer.solution.has_value()) {
    console.out << answer.solution->planned.text;
  } else {
    const Console to = form == "text" ? Complaining(console) : console;
    ShowSolution(to, *question, ModelFlags(*line), answer, kept);
  }
  return ExitCodeOf(answer);
}

}  // namespace kvasir::cli
