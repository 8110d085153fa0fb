// Plans on this machine: `kvasir plan` saves what it made, other commands find it by the beginning of its id.
//   <state>/plans/<plan_id>.txt      canonical text of the plan
//   <state>/models/<digest>.txt      canonical text of the models it names, which an apply sends along
//   <state>/questions/<plan_id>.json what was asked (stored_question.h)
// <state> is $XDG_STATE_HOME/kvasir, or ~/.local/state/kvasir.
#ifndef KVASIR_PLANNER_CLI_PLAN_STORE_H_
#define KVASIR_PLANNER_CLI_PLAN_STORE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "planner/cli/console.h"

namespace kvasir::cli {

struct StoredPlan {
  Plan plan;
  std::string text;
  std::string plan_id;
};

// FailedPrecondition where neither XDG_STATE_HOME nor HOME is set.
[[nodiscard]] absl::StatusOr<std::string> StateFolder(const Console& console);

// Writes a file of the store, in one step: a reader sees the old content or the new, never a part.
[[nodiscard]] absl::Status SavePlan(const Console& console, std::string_view plan_id, std::string_view text);
[[nodiscard]] absl::Status SaveModel(const Console& console, std::string_view digest, std::string_view text);

// Any file of the store by its path in it, at most 4 MiB. NotFound: it is not stored.
[[nodiscard]] absl::Status SaveText(const Console& console, const std::string& path, std::string_view text);
[[nodiscard]] absl::StatusOr<std::string> LoadText(const Console& console, const std::string& path);

// `word` is a file, or a prefix of at least 4 digits of a stored plan's id. The text is parsed, verified and
// hashed. NotFound; InvalidArgument: several ids begin so, the file is no plan, or the stored text has
// another id.
[[nodiscard]] absl::StatusOr<StoredPlan> LoadPlan(const Console& console, const std::string& word);

// NotFound: not stored. DataLoss: the stored text has another digest.
[[nodiscard]] absl::StatusOr<std::string> LoadModelText(const Console& console, const std::string& digest);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_PLAN_STORE_H_
