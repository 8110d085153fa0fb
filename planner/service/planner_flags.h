// The flags of kvasir-planner.
#ifndef KVASIR_PLANNER_SERVICE_PLANNER_FLAGS_H_
#define KVASIR_PLANNER_SERVICE_PLANNER_FLAGS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvasir {

struct PlannerFlags {
  std::string listen = "127.0.0.1:7450";
  std::string state_dir;  // empty: $XDG_STATE_HOME/kvasir/planner, or ~/.local/state/kvasir/planner
  bool insecure = false;
  bool reflection = false;
  std::int64_t threads = 4;
  std::int64_t grace_seconds = 0;   // NOT_SERVING before calls are refused
  std::int64_t drain_seconds = 10;  // for calls and applies that run
  bool help = false;
};

// One line a flag, and the exit codes.
[[nodiscard]] std::string PlannerHelp();

// `--name value` or `--name=value`. InvalidArgument names the flag, its value and what is expected.
[[nodiscard]] absl::StatusOr<PlannerFlags> ParsePlannerFlags(std::span<const std::string> args);

// Where state lives without --state-dir; FailedPrecondition where the environment names no home.
[[nodiscard]] absl::StatusOr<std::string> DefaultStateDir(const char* xdg_state_home, const char* home);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_PLANNER_FLAGS_H_
