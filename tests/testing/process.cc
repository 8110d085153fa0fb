#include "tests/testing/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_format.h"

extern char** environ;

namespace kvasir::testing {
namespace {

// Between fork and exec only calls that are safe there: everything is prepared before.
[[noreturn]] void BecomeProgram(char* const* argv, char* const* environment, int output_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int empty = open("/dev/null", O_RDONLY);
  dup2(empty, STDIN_FILENO);
  dup2(output_fd, STDOUT_FILENO);
  dup2(output_fd, STDERR_FILENO);
  execve(argv[0], argv, environment);
  _exit(127);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Process::Process(pid_t pid, int output_fd) : pid_(pid), reader_([this, output_fd] { Collect(output_fd); }) {}

absl::StatusOr<std::unique_ptr<Process>> Process::Start(
    const std::vector<std::string>& argv,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::string> arguments = argv;
  std::vector<std::string> variables;
  variables.reserve(environment.size());
  for (const auto& [name, value] : environment) {  // the first one counts
    variables.push_back(absl::StrFormat("%s=%s", name, value));
  }
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> variable_pointers = Pointers(variables);
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError("pipe2 failed");
  const pid_t pid = fork();
  if (pid == 0) BecomeProgram(argument_pointers.data(), variable_pointers.data(), ends[1]);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return absl::InternalError("fork failed");
  }
  return std::unique_ptr<Process>(new Process(pid, ends[0]));
}

Process::~Process() {
  Signal(SIGKILL);
  (void)WaitForExit();
  reader_.join();
}

void Process::Collect(int fd) {
  char buffer[4096];
  while (true) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    const std::lock_guard lock(mutex_);
    if (count <= 0) {
      closed_ = true;
      changed_.notify_all();
      break;
    }
    output_.append(buffer, static_cast<std::size_t>(count));
    changed_.notify_all();
  }
  close(fd);
}

absl::StatusOr<std::string> Process::WaitForText(const std::string& part, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  std::optional<std::string> found;
  const bool done = changed_.wait_for(lock, timeout, [&] {
    const std::size_t at = output_.find(part);
    const std::size_t end = at == std::string::npos ? at : output_.find('\n', at);
    if (end != std::string::npos) found = output_.substr(at + part.size(), end - at - part.size());
    return found.has_value() || closed_;
  });
  if (found.has_value()) return *found;
  const std::string what = absl::StrFormat("\"%s\" did not come; the output was:\n%s", part, output_);
  return done ? absl::AbortedError(what) : absl::DeadlineExceededError(what);
}

void Process::Signal(int signal) const {
  const std::lock_guard lock(mutex_);
  if (!exit_.has_value()) kill(pid_, signal);
}

std::optional<int> Process::WaitForExit(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      int status = 0;
      if (!exit_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) {
        exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      if (exit_.has_value() || std::chrono::steady_clock::now() >= deadline) return exit_;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string Process::output() const {
  const std::lock_guard lock(mutex_);
  return output_;
}

std::string BinaryPath(const std::string& name) { return std::string(KVASIR_BIN_DIR) + "/" + name; }

Finished RunToEnd(const std::vector<std::string>& argv,
                  const std::vector<std::pair<std::string, std::string>>& environment,
                  std::chrono::milliseconds timeout) {
  const absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(argv, environment);
  if (!process.ok()) return {-1, process.status().ToString()};
  const std::optional<int> exit = (*process)->WaitForExit(timeout);
  Finished finished{exit.value_or(-1), ""};
  // The pipe may still hold the last lines.
  if (exit.has_value()) (void)(*process)->WaitForText("\x01", std::chrono::seconds(5));
  finished.output = (*process)->output();
  return finished;
}

}  // namespace kvasir::testing
