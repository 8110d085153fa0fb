// The question of a stored plan, so that what else it could have asked can be tried later.
//   <state>/questions/<plan_id>.json   the options; the models are stored by their digests
#ifndef KVASIR_PLANNER_CLI_STORED_QUESTION_H_
#define KVASIR_PLANNER_CLI_STORED_QUESTION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/cli/console.h"
#include "planner/cli/plan_store.h"
#include "planner/questions/plan_question.h"

namespace kvasir::cli {

[[nodiscard]] absl::Status SaveQuestion(const Console& console, const std::string& plan_id,
                                        const PlanQuestion& question);

// NotFound: not stored here, or a model of it is not. DataLoss: what is stored was changed and no longer
// gives the plan.
[[nodiscard]] absl::StatusOr<PlanQuestion> LoadQuestion(const Console& console, const StoredPlan& plan);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_STORED_QUESTION_H_
