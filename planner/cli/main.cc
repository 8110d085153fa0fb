// The program `kvasir`. It links no gRPC: commands that talk to services are run by kvasir-remote, which lies
// beside it.
#include <iostream>
#include <string>
#include <vector>

#include "planner/cli/console.h"
#include "planner/cli/program.h"
#include "planner/cli/run_cli.h"

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto remote = [](const std::vector<std::string>& words) {
    return kvasir::cli::RunBeside("kvasir-remote", words);
  };
  const kvasir::cli::Console console{std::cout, std::cerr, kvasir::cli::ProcessWantsColour(),
                                     kvasir::cli::ProcessVariable, remote};
  return kvasir::cli::AfterOutput(kvasir::cli::RunCli(args, console));
}
