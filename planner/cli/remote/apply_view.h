// Progress and result of an apply or a preflight, for people and for programs.
#ifndef KVASIR_PLANNER_CLI_REMOTE_APPLY_VIEW_H_
#define KVASIR_PLANNER_CLI_REMOTE_APPLY_VIEW_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/cli/console.h"

namespace kvasir::cli {

// What the stream has told so far.
struct ApplyProgress {
  std::int64_t epoch = 0;
  std::size_t workers = 0;  // asked for
  std::vector<planner::v1::WorkerPrepared> prepared;
  std::vector<std::string> committed;  // addresses
  bool done = false;
};

// One line for each worker that has prepared its ranks.
void ShowPrepared(const Console& console, const planner::v1::WorkerPrepared& worker);
// "commit   epoch 12 on 2 of 2 workers   1.9 s".
void ShowCommitted(const Console& console, const ApplyProgress& progress, std::chrono::milliseconds took);
// Times of graphs and distances from the reference, and the verdict.
void ShowPreflight(const Console& console, const ApplyProgress& progress, std::chrono::milliseconds took);

// Whether every comparison is within its tolerance and every replay equals eager execution.
[[nodiscard]] bool PreflightPassed(const ApplyProgress& progress);

// One JSON object with a newline. `schema` is kvasir.apply/1 or kvasir.preflight/1.
[[nodiscard]] std::string ApplyJson(const std::string& schema, const std::string& plan_id,
                                    const ApplyProgress& progress, std::chrono::milliseconds took);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_REMOTE_APPLY_VIEW_H_
