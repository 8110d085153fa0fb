#include "planner/core/pipeline.h"

#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/plan/plan_text.h"
#include "common/plan/verify.h"
#include "planner/core/assembled.h"
#include "planner/core/build_report.h"

namespace kvasir {
namespace {

void Require(const absl::Status& status) {
  if (!status.ok()) internal::CheckFailed(__FILE__, __LINE__, status.ToString().c_str());
}

// Verifies a stage and hands its text to the sink, which costs nothing where there is none.
template <class Stage>
void Close(std::string_view name, const Stage& stage, const TraceSink& trace) {
  Require(Verify(stage));
  if (trace) trace(name, ToText(stage));
}

Planned Finish(const Graphed& graphed, const Ruleset& ruleset, const TraceSink& trace) {
  Planned out;
  out.plan = Assemble(graphed, ruleset.version);
  Require(VerifyPlan(out.plan));
  out.text = PlanToText(out.plan);
  out.plan_id = PlanId(out.text);
  out.report = BuildReport(out.plan, graphed.sized);
  if (trace) trace("plan", out.text);
  return out;
}

}  // namespace

PlanOutcome RunPipeline(PlanRequest request, const Ruleset& ruleset, const TraceSink& trace) {
  Canonical canonical = Canonicalize(std::move(request));
  Close("canonical", canonical, trace);
  std::variant<Validated, Refusals> checked = Validate(std::move(canonical));
  if (auto* refusals = std::get_if<Refusals>(&checked)) return std::move(*refusals);
  Validated& validated = std::get<Validated>(checked);
  Close("validated", validated, trace);
  Grouped grouped = ruleset.group(std::move(validated));
  Close("grouped", grouped, trace);
  Packed packed = ruleset.pack(std::move(grouped));
  Close("packed", packed, trace);
  std::variant<Sized, DoesNotFit> fitted = ruleset.size(std::move(packed));
  if (auto* does_not_fit = std::get_if<DoesNotFit>(&fitted)) return std::move(*does_not_fit);
  Sized& sized = std::get<Sized>(fitted);
  Close("sized", sized, trace);
  const Graphed graphed = AddGraphs(std::move(sized));
  Close("graphed", graphed, trace);
  return Finish(graphed, ruleset, trace);
}

}  // namespace kvasir
