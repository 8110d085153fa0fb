#include "planner/cli/program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "planner/cli/console.h"

namespace kvasir::cli {

std::optional<std::string> ProcessVariable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

bool ProcessWantsColour() {
  const std::string terminal = ProcessVariable("TERM").value_or("");
  return isatty(STDOUT_FILENO) == 1 && !ProcessVariable("NO_COLOR").has_value() && terminal != "dumb";
}

int AfterOutput(int code) {
  errno = 0;
  std::cout.flush();
  if (std::cout) return code;
  std::cerr << "kvasir: the answer could not be written to the standard output"
            << (errno == 0 ? "" : std::string(": ") + std::strerror(errno)) << "\n";
  return kExitServiceFailure;
}

int RunBeside(const std::string& program, const std::vector<std::string>& args) {
  std::error_code ec;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ec);
  const std::string path = (self.parent_path() / program).string();
  std::vector<std::string> words = args;
  words.insert(words.begin(), path);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::cout.flush();
  execv(path.c_str(), argv.data());
  std::cerr << "kvasir: cannot run " << path << ": " << std::strerror(errno)
            << "; it must lie beside kvasir\n";
  return kExitServiceFailure;
}

}  // namespace kvasir::cli
