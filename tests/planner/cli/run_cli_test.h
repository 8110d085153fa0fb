// The command line in this process with a state folder of its own, and the questions that tests ask of it.
#ifndef KVASIR_TESTS_PLANNER_CLI_RUN_CLI_TEST_H_
#define KVASIR_TESTS_PLANNER_CLI_RUN_CLI_TEST_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/planner/cli/run_kvasir.h"

namespace kvasir::cli {

namespace fs = std::filesystem;

class RunCliTest : public ::testing::Test {
 protected:
  RunCliTest() : root_(fs::path(::testing::TempDir()) / ("kvasir_cli_" + TestName())) {
    fs::remove_all(root_);
    variables_["XDG_STATE_HOME"] = root_.string();
  }
  ~RunCliTest() override { fs::remove_all(root_); }

  Answer Run(const std::vector<std::string>& args, bool colour = false) {
    std::ostringstream out;
    std::ostringstream err;
    const auto variable = [this](std::string_view name) -> std::optional<std::string> {
      const auto it = variables_.find(std::string(name));
      if (it == variables_.end()) return std::nullopt;
      return it->second;
    };
    const auto remote = [this](const std::vector<std::string>& words) {
      remote_words_ = words;
      return kExitServiceFailure;
    };
    const int code = RunCli(args, Console{out, err, colour, variable, remote});
    return {code, out.str(), err.str()};
  }

  static std::string TestName() { return ::testing::UnitTest::GetInstance()->current_test_info()->name(); }

  fs::path root_;
  std::map<std::string, std::string> variables_;
  std::vector<std::string> remote_words_;
};

inline const std::vector<std::string> kKimi = {"--target", "kimi-k3", "--draft", "kimi-k3-dspark",
                                               "--tp",     "8",       "--dcp",   "8"};
inline const std::vector<std::string> kDemo = {"--target", "demo-target", "--draft", "demo-dspark",
                                               "--tp",     "2",           "--dcp",   "2"};

inline std::vector<std::string> CommandOf(std::string command, const std::vector<std::string>& common,
                                          const std::vector<std::string>& more) {
  std::vector<std::string> out = {std::move(command)};
  out.insert(out.end(), common.begin(), common.end());
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace kvasir::cli

#endif  // KVASIR_TESTS_PLANNER_CLI_RUN_CLI_TEST_H_
