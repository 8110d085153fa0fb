#include "planner/service/convert_questions.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/core/capacity.h"
#include "planner/service/check_field.h"
#include "planner/service/convert_outcome.h"
#include "planner/service/convert_request.h"
#include "planner/wire/options_to_proto.h"

namespace kvasir {
namespace {

namespace wire = ::kvasir::planner::v1;

constexpr std::int64_t kRanksTried = 64;
constexpr std::int64_t kAxisMax = 64;
constexpr std::int64_t kDeviceBytesMax = 64;

absl::StatusOr<SolveGoal> GoalFromProto(wire::SolveGoal goal) {
  switch (goal) {
    case wire::SOLVE_GOAL_CONTEXT:
      return SolveGoal::kContext;
    case wire::SOLVE_GOAL_REQUESTS:
      return SolveGoal::kRequests;
    case wire::SOLVE_GOAL_RANKS:
      return SolveGoal::kRanks;
    case wire::SOLVE_GOAL_MEMORY:
      return SolveGoal::kMemory;
    case wire::SOLVE_GOAL_UNSPECIFIED:
      return MissingField("goal", "what is looked for: a context, requests, ranks or memory");
    default:
      return FieldError(reason::kUnknownValue, "goal",
                        absl::StrFormat("goal is %d, which is no SolveGoal", static_cast<int>(goal)));
  }
}

absl::StatusOr<GpuRow> DeviceFromProto(const std::string& field, const std::string& name) {
  KVASIR_RETURN_IF_ERROR(CheckTextBytes(field, name, kDeviceBytesMax));
  const absl::StatusOr<GpuRow> row = FindGpu(name);
  if (!row.ok()) return FieldError(reason::kUnknownValue, field, std::string(row.status().message()));
  return *row;
}

// One axis of numbers, each in its range; longer lists than kAxisMax are refused before they are read.
template <class List>
absl::Status TakeNumbers(const std::string& field, const List& list, std::int64_t min, std::int64_t max,
                         std::vector<std::int64_t>& axis) {
  KVASIR_RETURN_IF_ERROR(CheckCount(field, list.size(), kAxisMax));
  for (int i = 0; i < list.size(); ++i) {
    KVASIR_RETURN_IF_ERROR(CheckRange(absl::StrFormat("%s[%d]", field, i), list[i], min, max));
    axis.push_back(list[i]);
  }
  return absl::OkStatus();
}

template <class List>
absl::Status TakeTexts(const std::string& field, const List& list, std::vector<std::string>& axis) {
  KVASIR_RETURN_IF_ERROR(CheckCount(field, list.size(), kAxisMax));
  for (int i = 0; i < list.size(); ++i) {
    KVASIR_RETURN_IF_ERROR(CheckTextBytes(absl::StrFormat("%s[%d]", field, i), list[i], kNameBytesMax));
    axis.push_back(list[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<SweepAxes> AxesFromProto(const wire::SweepAxes& in) {
  SweepAxes axes;
  KVASIR_RETURN_IF_ERROR(TakeTexts("rulesets", in.rulesets(), axes.rulesets));
  KVASIR_RETURN_IF_ERROR(TakeNumbers("tps", in.tps(), 1, kRanksMax, axes.tp));
  KVASIR_RETURN_IF_ERROR(TakeNumbers("dcps", in.dcps(), 1, kRanksMax, axes.dcp));
  KVASIR_RETURN_IF_ERROR(
      TakeNumbers("block_tokens", in.block_tokens(), 0, kBlockTokensMax, axes.block_tokens));
  KVASIR_RETURN_IF_ERROR(TakeTexts("cache_dtypes", in.cache_dtypes(), axes.cache_dtypes));
  KVASIR_RETURN_IF_ERROR(TakeTexts("state_rollbacks", in.state_rollbacks(), axes.state_rollbacks));
  KVASIR_RETURN_IF_ERROR(
      TakeNumbers("draft_tokens", in.draft_tokens(), 1, kDraftTokensMax, axes.draft_tokens));
  KVASIR_RETURN_IF_ERROR(
      TakeNumbers("context_tokens", in.context_tokens(), 0, kContextTokensMax, axes.contexts));
  KVASIR_RETURN_IF_ERROR(
      TakeNumbers("kv_memory_bytes", in.kv_memory_bytes(), 1, kArenaBytesMax, axes.kv_memory_bytes));
  KVASIR_RETURN_IF_ERROR(CheckCount("devices", in.devices_size(), kAxisMax));
  for (int i = 0; i < in.devices_size(); ++i) {
    KVASIR_ASSIGN_OR_RETURN(const GpuRow row,
                            DeviceFromProto(absl::StrFormat("devices[%d]", i), in.devices(i)));
    axes.devices.push_back(row);
  }
  return axes;
}

wire::PlanSolution SolutionToProto(const Solution& solution) {
  wire::PlanSolution out;
  out.set_value(solution.value);
  *out.mutable_options() = OptionsToProto(solution.options);
  *out.mutable_capacity() = CapacityToProto(CapacityAt(solution.planned.plan, solution.context_tokens));
  out.set_plan_id(solution.planned.plan_id);
  out.set_canonical_text(solution.planned.text);
  return out;
}

}  // namespace

absl::StatusOr<SolveQuestion> SolveFromProto(const wire::SolvePlanRequest& in) {
  SolveQuestion question;
  KVASIR_ASSIGN_OR_RETURN(question.goal, GoalFromProto(in.goal()));
  const bool needs_memory = question.goal != SolveGoal::kMemory && in.device().empty();
  KVASIR_ASSIGN_OR_RETURN(question.base, QuestionFromProto(in, needs_memory));
  if (question.base.options.ruleset != "native") {
    return FieldError(reason::kUnknownValue, "options.ruleset",
                      absl::StrFormat("ruleset \"%s\" cannot be solved for; only native can",
                                      question.base.options.ruleset));
  }
  if (!in.device().empty()) {
    KVASIR_ASSIGN_OR_RETURN(question.device, DeviceFromProto("device", in.device()));
  }
  KVASIR_RETURN_IF_ERROR(CheckRange("rank_count_max", in.rank_count_max(), 0, kRanksMax));
  question.ranks_max = in.rank_count_max() == 0 ? kRanksTried : in.rank_count_max();
  question.dcp_is_said = in.options().topology().dcp() != 0;
  question.batch_is_said = in.options().request_count_max() != 0;
  return question;
}

absl::StatusOr<SweepTask> SweepFromProto(const wire::SweepPlansRequest& in) {
  SweepTask task;
  if (!in.has_axes()) return MissingField("axes", "lists of values");
  absl::StatusOr<SweepAxes> axes = AxesFromProto(in.axes());
  if (!axes.ok()) return WithinField("axes", axes.status());
  task.axes = *std::move(axes);
  const bool needs_memory = task.axes.kv_memory_bytes.empty() && task.axes.devices.empty();
  KVASIR_ASSIGN_OR_RETURN(task.base, QuestionFromProto(in, needs_memory));
  const absl::StatusOr<std::int64_t> points = CountPoints(task.base, task.axes);
  if (!points.ok()) return WithinField("axes", points.status());
  if (*points > kWirePointsMax) {
    return FieldError(
        reason::kValueOutOfRange, "axes",
        absl::StrFormat("axes make %d points; give at most %d at a time", *points, kWirePointsMax));
  }
  return task;
}

wire::ComparePlansResponse ComparisonToProto(const PlanComparison& comparison) {
  wire::ComparePlansResponse out;
  for (const CapacityChange& change : comparison.capacity) {
    wire::CapacityChange* row = out.add_capacity_changes();
    *row->mutable_before() = CapacityToProto(change.before);
    *row->mutable_after() = CapacityToProto(change.after);
  }
  for (const FieldChange& change : comparison.fields) {
    wire::FieldChange* row = out.add_field_changes();
    row->set_kind(std::string(FieldKindName(change.kind)));
    row->set_field(change.field);
    row->set_before(change.before);
    row->set_after(change.after);
  }
  return out;
}

wire::SolvePlanResponse SolveToProto(const SolveAnswer& answer) {
  wire::SolvePlanResponse out;
  if (answer.solution.has_value()) {
    *out.mutable_solution() = SolutionToProto(*answer.solution);
  } else {
    wire::PlanNoSolution* none = out.mutable_no_solution();
    for (const Refusal& refusal : answer.why_not.refusals) *none->add_refusals() = RefusalToProto(refusal);
    if (answer.why_not.misfit.has_value())
      *none->mutable_does_not_fit() = DoesNotFitToProto(*answer.why_not.misfit);
    none->set_device(answer.why_not.device);
  }
  if (answer.at_best.has_value()) *out.mutable_at_best() = SolutionToProto(*answer.at_best);
  for (const ChangedSolution& change : answer.instead) {
    wire::PlanChange* row = out.add_changes();
    row->set_flags(change.flags);
    row->set_value(change.value);
  }
  return out;
}

wire::SweepPoint PointToProto(const SweepPoint& point) {
  wire::SweepPoint out;
  *out.mutable_options() = OptionsToProto(point.options);
  out.set_device(std::string(point.device));
  out.set_verdict(std::string(SweepVerdictName(point.verdict)));
  out.set_context_tokens(point.context_tokens);
  out.set_request_count(point.requests);
  out.set_bytes_per_request(point.bytes_per_request);
  out.set_plan_id(point.plan_id);
  out.set_reason(point.why);
  out.set_request_count_most(point.requests_most);
  return out;
}

}  // namespace kvasir
