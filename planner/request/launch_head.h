// The front of a launch command: variables, wrappers, and the program that is the engine.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_HEAD_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_HEAD_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace kvasir {

struct LaunchHead {
  std::vector<std::pair<std::string, std::string>> variables;  // NAME, value, in order
  bool optimized_python = false;                               // python -O
  bool positional_model = false;                               // `vllm serve MODEL`; else --model names it
  std::vector<std::string> notes;
  std::vector<std::string> rest;  // what follows the program
};

// InvalidArgument with field "command" where no engine is started: says what the words begin with instead.
[[nodiscard]] absl::StatusOr<LaunchHead> ReadLaunchHead(std::span<const std::string> words);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_HEAD_H_
