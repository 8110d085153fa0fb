// `kvasir` in this process, without variables, state or a server.
#ifndef KVASIR_TESTS_PLANNER_CLI_RUN_KVASIR_H_
#define KVASIR_TESTS_PLANNER_CLI_RUN_KVASIR_H_

#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "planner/cli/run_cli.h"

namespace kvasir::cli {

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

inline Answer Kvasir(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const auto variable = [](std::string_view) -> std::optional<std::string> { return std::nullopt; };
  const auto remote = [](const std::vector<std::string>&) { return kExitServiceFailure; };
  const int code = RunCli(args, Console{out, err, false, variable, remote});
  return {code, out.str(), err.str()};
}

}  // namespace kvasir::cli

#endif  // KVASIR_TESTS_PLANNER_CLI_RUN_KVASIR_H_
