#include "planner/cli/find_alternatives.h"

#include <optional>
#include <utility>
#include <variant>

#include "planner/cli/engine_line.h"
#include "planner/core/capacity.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir::cli {
namespace {

// At the lengths of `capacity`. Nothing, where the question has no plan.
void AddPlanned(const PlanQuestion& question, std::string label, const std::vector<CapacityRow>& capacity,
                std::vector<Alternative>& out) {
  const PlanOutcome answer = MakePlan(RequestOf(question));
  const auto* fits = std::get_if<Planned>(&answer);
  if (fits == nullptr) return;
  Alternative other{.label = std::move(label), .capacity = {}};
  other.capacity.reserve(capacity.size());
  for (const CapacityRow& row : capacity)
    other.capacity.push_back(CapacityAt(fits->plan, row.context_tokens));
  out.push_back(std::move(other));
}

}  // namespace

std::vector<Alternative> FindAlternatives(const PlanQuestion& question, const Report& report) {
  std::vector<Alternative> out;
  for (const RollbackOption& option : report.rollback_options) {
    if (option.chosen || !option.possible) continue;
    PlanQuestion other = question;
    other.options.state_rollback = StateRollbackName(option.rollback);
    AddPlanned(other, "with " + other.options.state_rollback, report.capacity, out);
  }
  if (question.draft.has_value() && question.options.dcp > 1) {
    PlanQuestion other = question;
    const bool sharded = question.options.draft_context == kDraftSharded;
    other.options.draft_context = sharded ? kDraftReplicated : kDraftSharded;
    AddPlanned(other, "draft " + other.options.draft_context, report.capacity, out);
  }
  if (std::optional<Alternative> engine = EngineLine(question, report.capacity)) {
    out.push_back(*std::move(engine));
  }
  return out;
}

}  // namespace kvasir::cli
