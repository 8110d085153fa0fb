// The core's answers -> the wire. Total.
#ifndef KVASIR_PLANNER_SERVICE_CONVERT_OUTCOME_H_
#define KVASIR_PLANNER_SERVICE_CONVERT_OUTCOME_H_

#include <vector>

#include "common/plan/plan.h"
#include "kvasir/plan/v1/plan.pb.h"
#include "kvasir/plan/v1/refusal.pb.h"
#include "kvasir/plan/v1/report.pb.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/core/explain.h"
#include "planner/core/outcome.h"
#include "planner/questions/explain_question.h"

namespace kvasir {

[[nodiscard]] plan::v1::Plan PlanToProto(const Plan& plan);
[[nodiscard]] plan::v1::Capacity CapacityToProto(const CapacityRow& row);
[[nodiscard]] plan::v1::CapacityReport ReportToProto(const Report& report);
[[nodiscard]] plan::v1::Remedy RemedyToProto(const Remedy& remedy);
[[nodiscard]] plan::v1::Refusal RefusalToProto(const Refusal& refusal);
[[nodiscard]] plan::v1::DoesNotFit DoesNotFitToProto(const DoesNotFit& misfit);
[[nodiscard]] plan::v1::ExplainLine ExplainLineToProto(const ExplainLine& line);
[[nodiscard]] planner::v1::CreatePlanResponse OutcomeToProto(const PlanOutcome& outcome);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_CONVERT_OUTCOME_H_
