// Canonical text of a plan, both ways, and its id. The grammar stands above the writer in plan_text.cc and in
// docs/formats/plan_text.md. Equal plans give equal bytes on every compiler and build type.
#ifndef KVASIR_COMMON_PLAN_PLAN_TEXT_H_
#define KVASIR_COMMON_PLAN_PLAN_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"

namespace kvasir {

// Versioned first line, sorted, ASCII, LF; one fact a line.
[[nodiscard]] std::string PlanToText(const Plan& plan);

// InvalidArgument naming the line, what stood there and what was expected. Accepts only what PlanToText can
// write: PlanToText(PlanFromText(t)) == t for every accepted t. Does not judge the plan; see verify.h.
[[nodiscard]] absl::StatusOr<Plan> PlanFromText(std::string_view text);

// SHA-256 of the canonical text, 64 hex digits.
[[nodiscard]] std::string PlanId(std::string_view canonical_text);

}  // namespace kvasir

#endif  // KVASIR_COMMON_PLAN_PLAN_TEXT_H_
