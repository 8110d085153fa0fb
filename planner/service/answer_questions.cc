#include "planner/service/answer_questions.h"

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/plan/plan_text.h"
#include "common/plan/verify.h"
#include "planner/service/check_field.h"
#include "planner/service/convert_questions.h"

namespace kvasir {
namespace {

namespace wire = ::kvasir::planner::v1;

constexpr std::int64_t kPointsPerMessage = 256;

absl::StatusOr<Plan> PlanOf(const std::string& field, const std::string& text) {
  if (text.empty()) return MissingField(field, "the canonical text of a plan");
  KVASIR_RETURN_IF_ERROR(CheckTextBytes(field, text, kPlanTextBytesMax));
  absl::StatusOr<Plan> plan = PlanFromText(text);
  if (!plan.ok()) return WithReason(reason::kPlanTextInvalid, field, plan.status());
  KVASIR_RETURN_IF_ERROR(WithReason(reason::kPlanInvalid, field, VerifyPlan(*plan)));
  return plan;
}

}  // namespace

absl::StatusOr<wire::ComparePlansResponse> AnswerComparePlans(const wire::ComparePlansRequest& request) {
  KVASIR_ASSIGN_OR_RETURN(const Plan before, PlanOf("before_plan_text", request.before_plan_text()));
  KVASIR_ASSIGN_OR_RETURN(const Plan after, PlanOf("after_plan_text", request.after_plan_text()));
  wire::ComparePlansResponse response = ComparisonToProto(ComparePlans(before, after));
  response.set_before_plan_id(Sha256Hex(request.before_plan_text()));
  response.set_after_plan_id(Sha256Hex(request.after_plan_text()));
  return response;
}

absl::StatusOr<wire::SolvePlanResponse> AnswerSolvePlan(const wire::SolvePlanRequest& request,
                                                        const GoOn& go_on) {
  KVASIR_ASSIGN_OR_RETURN(const SolveQuestion question, SolveFromProto(request));
  return SolveToProto(Solve(question, go_on));
}

absl::Status AnswerSweepPlans(const wire::SweepPlansRequest& request, const GoOn& go_on,
                              const std::function<void(const wire::SweepPlansResponse&)>& send) {
  KVASIR_ASSIGN_OR_RETURN(const SweepTask task, SweepFromProto(request));
  wire::SweepPlansResponse part;
  const std::vector<SweepPoint> points =
      Sweep(task.base, task.axes, [&](const SweepPoint& point, const SweepProgress& at) {
        *part.add_points() = PointToProto(point);
        part.set_done_count(at.done);
        part.set_point_count(at.points);
        if (part.points_size() == kPointsPerMessage) {
          send(part);
          part.clear_points();
        }
        return go_on();
      });
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].on_front) part.add_front(static_cast<std::int64_t>(i));
  }
  send(part);
  return absl::OkStatus();
}

}  // namespace kvasir
