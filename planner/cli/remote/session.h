// What every command that talks to a planner needs: the flags for it, a channel, and how a failure is told.
#ifndef KVASIR_PLANNER_CLI_REMOTE_SESSION_H_
#define KVASIR_PLANNER_CLI_REMOTE_SESSION_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/cli/command_line.h"
#include "planner/cli/console.h"

namespace kvasir::cli {

inline constexpr std::string_view kServerDefault = "127.0.0.1:7450";

// `own` and the flags --server, --deployment, --timeout, --output.
[[nodiscard]] std::vector<Flag> WithSessionFlags(std::span<const Flag> own);

struct Session {
  std::string server;      // host:port
  std::string deployment;  // "default" unless --deployment is given
  std::chrono::milliseconds timeout{30'000};
  std::string output;  // table | json | text
  std::shared_ptr<grpc::Channel> channel;
};

// --server, else KVASIR_SERVER, else kServerDefault. `has_text`: --output may be text too. InvalidArgument:
// an address, a duration or a form that is none.
[[nodiscard]] absl::StatusOr<Session> OpenSession(const Console& console, const CommandLine& line,
                                                  bool has_text = false);

// "<command> failed   REASON", the message and the values that travelled with it, on the error stream. Gives
// kExitBadUsage where the service says that an argument is wrong, else kExitServiceFailure.
int ServiceFailure(const Console& console, std::string_view command, const absl::Status& status);

// "10s", "500ms", "2m", "1h". InvalidArgument for another form.
[[nodiscard]] absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text);

// The flag's duration, or the fallback where it is not given.
[[nodiscard]] absl::StatusOr<std::chrono::milliseconds> DurationOr(const CommandLine& line,
                                                                   std::string_view flag,
                                                                   std::chrono::milliseconds fallback);

// "1.9 s".
[[nodiscard]] std::string SecondsText(std::chrono::milliseconds time);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_REMOTE_SESSION_H_
