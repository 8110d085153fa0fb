// What `plan` and `validate` ask: two models and options, from the command line.
#ifndef KVASIR_PLANNER_CLI_PLAN_QUESTION_H_
#define KVASIR_PLANNER_CLI_PLAN_QUESTION_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "planner/cli/command_line.h"
#include "planner/questions/plan_question.h"

namespace kvasir::cli {

// --draft mtp: the target's own layers of multi-token prediction.
inline constexpr std::string_view kOwnLayersDraft = "mtp";

// The flags that both commands take.
[[nodiscard]] std::span<const Flag> PlanFlags();

// `needs_memory`: --kv-memory must be given. InvalidArgument and NotFound are errors of usage.
[[nodiscard]] absl::StatusOr<PlanQuestion> ReadQuestion(const CommandLine& line, bool needs_memory);

// 0 means that nothing was said, which no flag says.
[[nodiscard]] absl::Status CheckDraftTokens(std::int64_t tokens);

// A catalogue name, a config.json, a directory that holds one, or a file of canonical model text.
[[nodiscard]] absl::StatusOr<ModelDescription> ReadModel(std::string_view word);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_PLAN_QUESTION_H_
