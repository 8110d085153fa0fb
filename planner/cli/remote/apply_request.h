// From the command line to an ApplyPlanRequest.
#ifndef KVASIR_PLANNER_CLI_REMOTE_APPLY_REQUEST_H_
#define KVASIR_PLANNER_CLI_REMOTE_APPLY_REQUEST_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/cli/command_line.h"
#include "planner/cli/console.h"
#include "planner/cli/remote/session.h"

namespace kvasir::cli {

// The flags that `apply` and `preflight` share.
[[nodiscard]] std::span<const Flag> ApplyFlags();

// Loads the plan and its models from the store, or the models from --target and --draft, and divides the
// ranks over the workers. InvalidArgument and NotFound are errors of usage.
[[nodiscard]] absl::StatusOr<planner::v1::ApplyPlanRequest> MakeApplyRequest(const Console& console,
                                                                             const Session& session,
                                                                             const CommandLine& line);

// "a:1,b:2" and 5 ranks: a has 0, 1, 2 and b has 3, 4. InvalidArgument: an address that is none or is there
// twice, more workers than ranks.
[[nodiscard]] absl::StatusOr<std::vector<planner::v1::WorkerAssignment>> AssignRanks(std::string_view workers,
                                                                                     std::int64_t ranks);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_REMOTE_APPLY_REQUEST_H_
