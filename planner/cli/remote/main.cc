// The program `kvasir-remote`: the commands of kvasir that talk to services.
#include <iostream>
#include <string>
#include <vector>

#include "planner/cli/console.h"
#include "planner/cli/program.h"
#include "planner/cli/remote/remote_commands.h"

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const kvasir::cli::Console console{std::cout, std::cerr, kvasir::cli::ProcessWantsColour(),
                                     kvasir::cli::ProcessVariable, nullptr};
  return kvasir::cli::AfterOutput(kvasir::cli::RunRemoteCli(args, console));
}
