#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/limits.h"
#include "planner/questions/solve_one.h"

namespace kvasir {
namespace {

// Of several failures the one that is nearest to fitting: memory that is short by least, then the last device
// that is full, then rules.
void KeepNearest(NoSolution failure, NoSolution& nearest) {
  if (failure.misfit.has_value()) {
    if (nearest.misfit.has_value() && nearest.misfit->shortfall <= failure.misfit->shortfall) return;
    nearest = std::move(failure);
    return;
  }
  if (nearest.misfit.has_value()) return;
  if (!failure.device.empty() || (nearest.device.empty() && nearest.refusals.empty()))
    nearest = std::move(failure);
}

Tried TryRanks(const SolveQuestion& question, std::int64_t tp, std::int64_t dcp) {
  PlanQuestion asked = question.base;
  asked.options.tp = tp;
  asked.options.dcp = dcp;
  if (std::optional<NoSolution> none = SetMemory(question, asked)) return *std::move(none);
  return TryToPlan(asked);
}

}  // namespace

Tried SolveRanks(const SolveQuestion& question, const GoOn& go_on) {
  NoSolution nearest;
  const std::int64_t most = std::min(question.ranks_max, kRanksMax);
  for (std::int64_t tp = 1; tp <= most; ++tp) {
    std::optional<Solution> best;
    for (std::int64_t dcp = 1; dcp <= tp; ++dcp) {
      if (tp % dcp != 0 || (question.dcp_is_said && dcp != question.base.options.dcp)) continue;
      if (go_on && !go_on()) {
        if (best.has_value()) return *std::move(best);
        return nearest;
      }
      Tried tried = TryRanks(question, tp, dcp);
      if (auto* failure = std::get_if<NoSolution>(&tried)) {
        failure->tp = tp;
        failure->dcp = dcp;
        KeepNearest(std::move(*failure), nearest);
        continue;
      }
      Solution& found = std::get<Solution>(tried);
      if (!best.has_value() || found.requests > best->requests) best = std::move(found);
    }
    if (best.has_value()) return *std::move(best);
  }
  return nearest;
}

}  // namespace kvasir
