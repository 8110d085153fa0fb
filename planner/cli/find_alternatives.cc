#include "planner/cli/find_alternatives.h"

#include <optional>
#include <utility>
#include <variant>

#include "planner/cli/engine_line.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir::cli {

std::vector<Alternative> FindAlternatives(const PlanQuestion& question, const Report& report) {
  std::vector<Alternative> out;
  for (const RollbackOption& option : report.rollback_options) {
    if (option.chosen || !option.possible) continue;
    PlanQuestion other = question;
    other.options.state_rollback = StateRollbackName(option.rollback);
    const PlanOutcome answer = MakePlan(RequestOf(other));
    if (const auto* fits = std::get_if<Planned>(&answer)) {
      out.push_back({"with " + other.options.state_rollback, fits->report.capacity});
    }
  }
  if (std::optional<Alternative> engine = EngineLine(question, report.capacity)) {
    out.push_back(*std::move(engine));
  }
  return out;
}

}  // namespace kvasir::cli
