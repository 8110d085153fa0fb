// The command line `kvasir`, in-process.
#ifndef KVASIR_PLANNER_CLI_RUN_CLI_H_
#define KVASIR_PLANNER_CLI_RUN_CLI_H_

#include <span>
#include <string>

#include "planner/cli/console.h"

namespace kvasir::cli {

// `args` without the program's name. Gives the exit code; never throws, never exits.
int RunCli(std::span<const std::string> args, const Console& console);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_RUN_CLI_H_
