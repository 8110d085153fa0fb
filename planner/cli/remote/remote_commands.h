// The commands that talk to services, one file each.
#ifndef KVASIR_PLANNER_CLI_REMOTE_REMOTE_COMMANDS_H_
#define KVASIR_PLANNER_CLI_REMOTE_REMOTE_COMMANDS_H_

#include <span>
#include <string>

#include "planner/cli/commands.h"
#include "planner/cli/console.h"

namespace kvasir::cli {

// The command line `kvasir-remote`, in-process: what `kvasir` passes on.
int RunRemoteCli(std::span<const std::string> args, const Console& console);

int RunPlanOnServer(const Console& console, Args args);  // command_plan_server.cc
int RunApply(const Console& console, Args args);         // command_apply.cc
int RunPreflight(const Console& console, Args args);     // command_apply.cc
int RunDecode(const Console& console, Args args);        // command_decode.cc
int RunStatus(const Console& console, Args args);        // command_status.cc
int RunDelete(const Console& console, Args args);        // command_delete.cc

[[nodiscard]] std::string ApplyHelp();
[[nodiscard]] std::string PreflightHelp();
[[nodiscard]] std::string DecodeHelp();
[[nodiscard]] std::string StatusHelp();
[[nodiscard]] std::string DeleteHelp();

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_REMOTE_REMOTE_COMMANDS_H_
