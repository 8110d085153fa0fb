#include "planner/service/answers.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/plan/plan_text.h"
#include "common/plan/verify.h"
#include "planner/core/canonical.h"
#include "planner/core/explain.h"
#include "planner/core/validated.h"
#include "planner/questions/explain_question.h"
#include "planner/rulesets/make_plan.h"
#include "planner/service/answer_engine.h"
#include "planner/service/check_field.h"
#include "planner/service/convert_outcome.h"
#include "planner/service/convert_request.h"

namespace kvasir {
namespace {

planner::v1::CreatePlanResponse ResponseOf(const PlanOutcome& outcome, const PlanTask& task) {
  planner::v1::CreatePlanResponse response = OutcomeToProto(outcome);
  response.set_target_model_text(task.target_model_text);
  response.set_draft_model_text(task.draft_model_text);
  return response;
}

void AddLines(const std::vector<ExplainLine>& lines, planner::v1::ExplainPlanResponse& response) {
  for (const ExplainLine& line : lines) *response.add_lines() = ExplainLineToProto(line);
}

void AddRemedies(const PlanQuestion& question, const Plan& plan, const GoOn& go_on,
                 planner::v1::ExplainPlanResponse& response) {
  const std::vector<Remedy> remedies = RankRemedies(question, plan, go_on);
  AddLines(ExplainWeights(question), response);
  AddLines(ExplainRemedies(plan, remedies), response);
  for (const Remedy& remedy : remedies) *response.add_remedies() = RemedyToProto(remedy);
}

absl::StatusOr<planner::v1::ExplainPlanResponse> ExplainRequest(const planner::v1::CreatePlanRequest& request,
                                                                const GoOn& go_on) {
  if (AsksEngine(request)) {
    return FieldError(
        reason::kUnknownValue, "request.options.ruleset",
        "only plans of ruleset native are explained stage by stage; CreatePlan gives an engine's "
        "prediction with its warnings");
  }
  const absl::StatusOr<PlanTask> task = TaskFromProto(request);
  if (!task.ok()) {
    return WithinField("request", task.status());
  }
  planner::v1::ExplainPlanResponse response;
  const PlanOutcome outcome =
      MakePlan(task->request, [&response](std::string_view stage, std::string_view text) {
        planner::v1::StageTrace* trace = response.add_stages();
        trace->set_stage(std::string(stage));
        trace->set_text(std::string(text));
      });
  *response.mutable_outcome() = ResponseOf(outcome, *task);
  if (const auto* planned = std::get_if<Planned>(&outcome)) {
    AddLines(ExplainPlan(planned->plan, planned->report), response);
    // Explicit layers are no question whose models another option could read again.
    if (const absl::StatusOr<PlanQuestion> question = QuestionFromProto(request); question.ok())
      AddRemedies(*question, planned->plan, go_on, response);
  }
  return response;
}

absl::StatusOr<planner::v1::ExplainPlanResponse> ExplainText(const std::string& text) {
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("plan_text", text, kPlanTextBytesMax));
  const absl::StatusOr<Plan> plan = PlanFromText(text);
  if (!plan.ok()) {
    return WithReason(reason::kPlanTextInvalid, "plan_text", plan.status());
  }
  KVASIR_RETURN_IF_ERROR(WithReason(reason::kPlanInvalid, "plan_text", VerifyPlan(*plan)));
  planner::v1::ExplainPlanResponse response;
  AddLines(ExplainPlan(*plan), response);
  return response;
}

}  // namespace

absl::StatusOr<planner::v1::CreatePlanResponse> AnswerCreatePlan(
    const planner::v1::CreatePlanRequest& request) {
  if (AsksEngine(request)) {
    return AnswerEngine(request);
  }
  KVASIR_ASSIGN_OR_RETURN(const PlanTask task, TaskFromProto(request));
  return ResponseOf(MakePlan(task.request), task);
}

absl::StatusOr<planner::v1::ValidateSpecsResponse> AnswerValidateSpecs(
    const planner::v1::ValidateSpecsRequest& request) {
  KVASIR_ASSIGN_OR_RETURN(const PlanTask task, TaskFromProto(request));
  const std::vector<std::string> rulesets = RulesetNames();
  std::vector<Refusal> refusals;
  if (std::find(rulesets.begin(), rulesets.end(), task.request.ruleset) == rulesets.end()) {
    refusals = std::get<Refusals>(MakePlan(task.request)).refusals;  // that the ruleset is unknown
  } else if (auto answer = Validate(Canonicalize(task.request)); std::holds_alternative<Refusals>(answer)) {
    refusals = std::get<Refusals>(answer).refusals;
  }
  planner::v1::ValidateSpecsResponse response;
  for (const Refusal& refusal : refusals) {
    *response.add_refusals() = RefusalToProto(refusal);
  }
  return response;
}

absl::StatusOr<planner::v1::ExplainPlanResponse> AnswerExplainPlan(
    const planner::v1::ExplainPlanRequest& request, const GoOn& go_on) {
  switch (request.subject_case()) {
    case planner::v1::ExplainPlanRequest::kRequest:
      return ExplainRequest(request.request(), go_on);
    case planner::v1::ExplainPlanRequest::kPlanText:
      return ExplainText(request.plan_text());
    case planner::v1::ExplainPlanRequest::SUBJECT_NOT_SET:
      break;
  }
  return MissingField("subject", "a request or a plan_text");
}

}  // namespace kvasir
