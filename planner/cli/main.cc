// The program `kvasir`. It links no gRPC: commands that talk to services are run by kvasir-remote, which lies
// beside it.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "planner/cli/console.h"
#include "planner/cli/run_cli.h"

namespace {

std::optional<std::string> Variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

// Replaces this process; comes back only where that fails.
int RunRemote(const std::vector<std::string>& args) {
  std::error_code ec;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ec);
  const std::string program = (self.parent_path() / "kvasir-remote").string();
  std::vector<std::string> words = args;
  words.insert(words.begin(), program);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::cout.flush();
  execv(program.c_str(), argv.data());
  std::cerr << "kvasir: cannot run " << program << ": " << std::strerror(errno)
            << "; it must lie beside kvasir\n";
  return kvasir::cli::kExitServiceFailure;
}

bool WantsColour() {
  const std::string terminal = Variable("TERM").value_or("");
  return isatty(STDOUT_FILENO) == 1 && !Variable("NO_COLOR").has_value() && terminal != "dumb";
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const kvasir::cli::Console console{std::cout, std::cerr, WantsColour(), Variable, RunRemote};
  return kvasir::cli::RunCli(args, console);
}
