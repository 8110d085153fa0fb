// A program of the build, run by a test: started with its output collected, killed with the test.
#ifndef KVASIR_TESTS_TESTING_PROCESS_H_
#define KVASIR_TESTS_TESTING_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace kvasir::testing {

class Process {
 public:
  // argv[0] is a path. `environment` is added to the test's own. Standard input is empty; output and error
  // are collected together.
  static absl::StatusOr<std::unique_ptr<Process>> Start(
      const std::vector<std::string>& argv,
      const std::vector<std::pair<std::string, std::string>>& environment = {});
  // SIGKILL, if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  // The rest of the first line that contains `part`, after it. DeadlineExceeded or, if the program ended
  // before, Aborted; both with the output.
  absl::StatusOr<std::string> WaitForText(const std::string& part,
                                          std::chrono::milliseconds timeout = std::chrono::seconds(30));
  void Signal(int signal) const;
  // The exit code, or 128 + the signal that ended it. nullopt while it runs after `timeout`.
  std::optional<int> WaitForExit(std::chrono::milliseconds timeout = std::chrono::seconds(30));
  [[nodiscard]] std::string output() const;

 private:
  explicit Process(pid_t pid, int output_fd);
  void Collect(int fd);

  const pid_t pid_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string output_;
  bool closed_ = false;
  std::optional<int> exit_;
  std::thread reader_;
};

// <build>/bin/<name>
[[nodiscard]] std::string BinaryPath(const std::string& name);

// Runs to the end: exit code and output.
struct Finished {
  int exit_code = -1;
  std::string output;
};
[[nodiscard]] Finished RunToEnd(const std::vector<std::string>& argv,
                                const std::vector<std::pair<std::string, std::string>>& environment = {},
                                std::chrono::milliseconds timeout = std::chrono::seconds(120));

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_PROCESS_H_
