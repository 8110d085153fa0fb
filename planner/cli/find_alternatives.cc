#include "planner/cli/find_alternatives.h"

#include <optional>
#include <utility>
#include <variant>

#include "planner/cli/engine_line.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir::cli {
namespace {

// Nothing, where the question has no plan.
void AddPlanned(const PlanQuestion& question, std::string label, std::vector<Alternative>& out) {
  const PlanOutcome answer = MakePlan(RequestOf(question));
  if (const auto* fits = std::get_if<Planned>(&answer)) {
    out.push_back({std::move(label), fits->report.capacity});
  }
}

}  // namespace

std::vector<Alternative> FindAlternatives(const PlanQuestion& question, const Report& report) {
  std::vector<Alternative> out;
  for (const RollbackOption& option : report.rollback_options) {
    if (option.chosen || !option.possible) continue;
    PlanQuestion other = question;
    other.options.state_rollback = StateRollbackName(option.rollback);
    AddPlanned(other, "with " + other.options.state_rollback, out);
  }
  if (question.draft.has_value() && question.options.dcp > 1) {
    PlanQuestion other = question;
    const bool sharded = question.options.draft_context == kDraftSharded;
    other.options.draft_context = sharded ? kDraftReplicated : kDraftSharded;
    AddPlanned(other, "draft " + other.options.draft_context, out);
  }
  if (std::optional<Alternative> engine = EngineLine(question, report.capacity)) {
    out.push_back(*std::move(engine));
  }
  return out;
}

}  // namespace kvasir::cli
