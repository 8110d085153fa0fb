// Questions that take many plans, and their answers, between the wire and planner/questions.
#ifndef KVASIR_PLANNER_SERVICE_CONVERT_QUESTIONS_H_
#define KVASIR_PLANNER_SERVICE_CONVERT_QUESTIONS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kvasir/planner/v1/questions.pb.h"
#include "planner/core/compare_plans.h"
#include "planner/questions/solve.h"
#include "planner/questions/sweep.h"

namespace kvasir {

inline constexpr std::int64_t kWirePointsMax = 10'000;

struct SweepTask {
  PlanQuestion base;
  SweepAxes axes;
};

// InvalidArgument with reason and field path.
[[nodiscard]] absl::StatusOr<SolveQuestion> SolveFromProto(const planner::v1::SolvePlanRequest& wire);
[[nodiscard]] absl::StatusOr<SweepTask> SweepFromProto(const planner::v1::SweepPlansRequest& wire);

[[nodiscard]] planner::v1::ComparePlansResponse ComparisonToProto(const PlanComparison& comparison);
[[nodiscard]] planner::v1::SolvePlanResponse SolveToProto(const SolveAnswer& answer);
[[nodiscard]] planner::v1::SweepPoint PointToProto(const SweepPoint& point);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_CONVERT_QUESTIONS_H_
