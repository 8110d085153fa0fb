// The commands, one file each. Every one takes the words after its name and gives an exit code.
#ifndef KVASIR_PLANNER_CLI_COMMANDS_H_
#define KVASIR_PLANNER_CLI_COMMANDS_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "planner/cli/command_line.h"
#include "planner/cli/console.h"

namespace kvasir::cli {

using Args = std::span<const std::string>;

struct Command {
  std::string_view name;
  std::string_view words;                         // after the name, for the usage line
  std::string_view summary;                       // one line
  int (*run)(const Console& console, Args args);  // null: kvasir-remote runs it
  std::string (*flags_help)();                    // null: no flags
};

// In the order of the help text.
[[nodiscard]] std::span<const Command> Commands();

int RunPlan(const Console& console, Args args);      // command_plan.cc
int RunValidate(const Console& console, Args args);  // command_validate.cc
int RunExplain(const Console& console, Args args);   // command_explain.cc
int RunDiff(const Console& console, Args args);      // command_diff.cc
int RunSolve(const Console& console, Args args);     // command_solve.cc
int RunSweep(const Console& console, Args args);     // command_sweep.cc
int RunModels(const Console& console, Args args);    // command_models.cc
int RunVersion(const Console& console, Args args);   // command_version.cc

// Parts of `plan`, in command_engine_plan.cc: under a vllm ruleset, and --emit.
int RunEnginePlan(const Console& console, const CommandLine& line, const std::string& form);
int RunEmitVllm(const Console& console, const CommandLine& line);

// Part of `validate`, in command_engine_validate.cc: a launch command or explicit specs, whatever the memory.
int RunEngineValidate(const Console& console, const CommandLine& line, const std::string& form);

[[nodiscard]] std::string PlanHelp();
[[nodiscard]] std::string ValidateHelp();
[[nodiscard]] std::string ExplainHelp();
[[nodiscard]] std::string DiffHelp();
[[nodiscard]] std::string SolveHelp();
[[nodiscard]] std::string SweepHelp();
[[nodiscard]] std::string ModelsHelp();

// Prints "kvasir <command>: <what is wrong>" and where help is; gives kExitBadUsage.
int BadUsage(const Console& console, std::string_view command, const absl::Status& status);

// InvalidArgument unless `form` is one of table, json, text; `text` only where the command has it.
[[nodiscard]] absl::Status CheckOutput(std::string_view form, bool has_text);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_COMMANDS_H_
