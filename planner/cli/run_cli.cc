#include "planner/cli/run_cli.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"

namespace kvasir::cli {
namespace {

constexpr std::array kCommands = {
    Command{"plan", "[-- vllm serve MODEL ...]",
            "plan the caches of a target and its draft, or of a launch command", RunPlan, PlanHelp},
    Command{"validate", "[-- vllm serve MODEL ...]",
            "judge a combination, or a launch command, by the rules alone; needs no memory", RunValidate,
            ValidateHelp},
    Command{"explain", "PLAN", "why a plan is as it is", RunExplain, ExplainHelp},
    Command{"diff", "PLAN PLAN",
            "what the second plan admits beside the first, and why; a gate for pipelines", RunDiff, DiffHelp},
    Command{"solve", "context | requests | ranks | memory",
            "the largest context, the most requests, the fewest ranks, the least memory", RunSolve,
            SolveHelp},
    Command{"sweep", "", "a grid of questions in one table", RunSweep, SweepHelp},
    Command{"models", "[list | inspect MODEL]", "what models are known, and what one is made of", RunModels,
            ModelsHelp},
    Command{"apply", "PLAN", "prepare a plan on workers and switch to it", nullptr, nullptr},
    Command{"preflight", "PLAN", "prove a plan on workers, then free everything", nullptr, nullptr},
    Command{"decode", "PROMPT...", "decode prompts on a deployment", nullptr, nullptr},
    Command{"status", "", "what a deployment is doing", nullptr, nullptr},
    Command{"delete", "", "drain a deployment and free it", nullptr, nullptr},
    Command{"version", "", "this program's version", RunVersion, nullptr},
};

bool IsHelp(std::string_view word) { return word == "--help" || word == "-h" || word == "help"; }

void PrintUsage(std::ostream& out) {
  out << "kvasir plans, validates and runs KV caches for models that decode with a draft.\n\nUsage: kvasir "
         "COMMAND ...\n\n";
  for (const Command& command : kCommands) {
    out << absl::StrFormat("  %-10s %s\n", command.name, command.summary);
  }
  out << "\nkvasir COMMAND --help shows a command's flags.\n"
         "Exit codes: 0 ok, 1 refused, 2 bad usage, 3 does not fit, 4 service failure.\n";
}

void PrintCommandHelp(std::ostream& out, const Command& command) {
  out << absl::StrFormat("%s\n\nUsage: kvasir %s%s%s%s\n", command.summary, command.name,
                         command.words.empty() ? "" : " ", command.words,
                         command.flags_help == nullptr ? "" : " [flags]");
  if (command.flags_help != nullptr) out << "\n" << command.flags_help();
}

const Command* FindCommand(std::string_view name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

int UnknownCommand(const Console& console, const std::string& name) {
  std::vector<std::string> known;
  known.reserve(kCommands.size());
  for (const Command& command : kCommands) known.emplace_back(command.name);
  const std::string near = Nearest(name, known);
  console.err << absl::StrFormat("kvasir: unknown command \"%s\"%s\n", name,
                                 near.empty() ? "" : absl::StrFormat("; did you mean %s?", near))
              << "kvasir --help lists the commands\n";
  return kExitBadUsage;
}

bool HasFlag(Args args, const std::string& flag) {
  return std::any_of(args.begin(), args.end(),
                     [&flag](const std::string& arg) { return arg == flag || arg.starts_with(flag + "="); });
}

}  // namespace

std::span<const Command> Commands() { return kCommands; }

int BadUsage(const Console& console, std::string_view command, const absl::Status& status) {
  console.err << absl::StrFormat("kvasir %s: %s\nkvasir %s --help shows the flags\n", command,
                                 std::string(status.message()), command);
  return kExitBadUsage;
}

absl::Status CheckOutput(std::string_view form, bool has_text) {
  if (form == "table" || form == "json" || (form == "text" && has_text)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--output %s: expected table%s", form, has_text ? ", json or text" : " or json"));
}

int RunCli(std::span<const std::string> args, const Console& console) {
  if (args.empty()) {
    PrintUsage(console.err);
    return kExitBadUsage;
  }
  if (IsHelp(args[0]) && args.size() == 1) {
    PrintUsage(console.out);
    return kExitOk;
  }
  if (args[0] == "--version") return RunVersion(console, {});
  const Command* command = FindCommand(args[0]);
  if (command == nullptr) return UnknownCommand(console, args[0]);
  const Args rest = args.subspan(1);
  const bool on_server = command->name == "plan" && HasFlag(rest, "--server");
  if (on_server && HasFlag(rest, "--html")) {
    return BadUsage(
        console, "plan",
        absl::InvalidArgumentError("--html: only plans that are made here become a page; leave out "
                                   "--server, or --html"));
  }
  if (command->run == nullptr || on_server) {
    return console.run_remote({args.begin(), args.end()});
  }
  if (std::any_of(rest.begin(), rest.end(),
                  [](std::string_view arg) { return arg == "--help" || arg == "-h"; })) {
    PrintCommandHelp(console.out, *command);
    return kExitOk;
  }
  return command->run(console, rest);
}

}  // namespace kvasir::cli
