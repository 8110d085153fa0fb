#include "planner/questions/solve.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/insert_sorted.h"
#include "common/base/limits.h"
#include "planner/core/canonical.h"
#include "planner/core/capacity.h"
#include "planner/core/validated.h"
#include "planner/questions/changes.h"
#include "planner/questions/solve_one.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir {
namespace {

// A value that the planner worked out while it explained why a question does not fit; nullopt: none fits.
std::optional<std::int64_t> BestThatFits(SolveGoal goal, const DoesNotFit& misfit) {
  if (goal == SolveGoal::kMemory) {
    const std::int64_t needed = misfit.needed.value();
    return needed <= kArenaBytesMax ? std::optional(needed) : std::nullopt;
  }
  if (goal == SolveGoal::kContext) {
    return misfit.longest_context_tokens > 0 ? std::optional(misfit.longest_context_tokens) : std::nullopt;
  }
  for (const FitRemedy& remedy : misfit.remedies) {
    if (remedy.field == "min_requests") return remedy.requests;
  }
  return std::nullopt;
}

// More than anything admits, so that the planner says what it would admit.
void AskTooMuch(SolveGoal goal, PlanOptions& options) {
  if (goal == SolveGoal::kContext) options.contexts = {0};
  if (goal == SolveGoal::kRequests) options.min_requests = kRequestsMax;
  if (goal == SolveGoal::kMemory) options.kv_memory_bytes = {1};
}

void Ask(SolveGoal goal, std::int64_t value, PlanOptions& options) {
  if (goal == SolveGoal::kContext) options.contexts = {value};
  if (goal == SolveGoal::kRequests) options.min_requests = value;
  if (goal == SolveGoal::kMemory) options.kv_memory_bytes = {value};
}

std::int64_t ValueOf(SolveGoal goal, const Solution& solution) {
  switch (goal) {
    case SolveGoal::kContext:
      return solution.context_tokens;
    case SolveGoal::kRequests:
      return solution.requests;
    case SolveGoal::kRanks:
      return solution.planned.plan.topology.tp;
    case SolveGoal::kMemory:
      return solution.planned.plan.arena_bytes.value();
  }
  return 0;
}

Tried WithValue(SolveGoal goal, Tried tried) {
  if (auto* solution = std::get_if<Solution>(&tried)) solution->value = ValueOf(goal, *solution);
  return tried;
}

bool IsBetter(SolveGoal goal, std::int64_t value, std::int64_t than) {
  const bool more = goal == SolveGoal::kContext || goal == SolveGoal::kRequests;
  return more ? value > than : value < than;
}

}  // namespace

Tried TryToPlan(const PlanQuestion& question) {
  PlanOutcome outcome = MakePlan(RequestOf(question));
  if (auto* refused = std::get_if<Refusals>(&outcome))
    return NoSolution{.refusals = std::move(refused->refusals), .misfit = std::nullopt, .device = {}};
  if (auto* misfit = std::get_if<DoesNotFit>(&outcome))
    return NoSolution{.refusals = {}, .misfit = std::move(*misfit), .device = {}};
  Solution solution;
  solution.options = question.options;
  solution.planned = std::get<Planned>(std::move(outcome));
  solution.context_tokens = solution.planned.plan.context_tokens;
  const CapacityRow row = CapacityAt(solution.planned.plan, solution.context_tokens);
  solution.requests = row.requests;
  solution.guaranteed_requests = row.guaranteed_requests;
  return solution;
}

std::optional<NoSolution> SetMemory(const SolveQuestion& question, PlanQuestion& asked) {
  if (!question.device.has_value() || question.goal == SolveGoal::kMemory) return std::nullopt;
  asked.options.kv_memory_bytes = {kAnyMemoryBytes};
  std::variant<Validated, Refusals> checked = Validate(Canonicalize(RequestOf(asked)));
  if (auto* refused = std::get_if<Refusals>(&checked))
    return NoSolution{.refusals = std::move(refused->refusals), .misfit = std::nullopt, .device = {}};
  const absl::Status memory = SetMemoryOf(*question.device, question.end, asked);
  if (memory.ok()) return std::nullopt;
  return NoSolution{.refusals = {}, .misfit = std::nullopt, .device = std::string(memory.message())};
}

namespace {

// In batches of the question's own max_requests.
Tried SolveAsSaid(const SolveQuestion& question) {
  PlanQuestion asked = question.base;
  if (std::optional<NoSolution> none = SetMemory(question, asked)) return *std::move(none);
  PlanQuestion too_much = asked;
  AskTooMuch(question.goal, too_much.options);
  Tried tried = TryToPlan(too_much);
  const auto* none = std::get_if<NoSolution>(&tried);
  if (none == nullptr) return WithValue(question.goal, std::move(tried));
  if (!none->misfit.has_value()) return tried;
  const std::optional<std::int64_t> best = BestThatFits(question.goal, *none->misfit);
  // Asked as it was meant, so that what is missing is told for the question and not for too much of it.
  if (!best.has_value()) {
    if (question.goal == SolveGoal::kRequests) asked.options.min_requests = 1;
    return question.goal == SolveGoal::kRequests ? TryToPlan(asked) : tried;
  }
  const bool in_one_batch = question.goal == SolveGoal::kRequests && !question.batch_is_said;
  Ask(question.goal, in_one_batch ? std::min(*best, asked.options.max_requests) : *best, asked.options);
  return WithValue(question.goal, TryToPlan(asked));
}

Tried SolveInBatchesOf(std::int64_t requests, SolveQuestion question) {
  question.base.options.max_requests = requests;
  Tried tried = SolveAsSaid(question);
  if (auto* solution = std::get_if<Solution>(&tried)) solution->value = std::min(solution->value, requests);
  return tried;
}

// The largest batch that is admitted whole: a device leaves less to caches beside larger batches.
Tried SolveWholeBatch(const SolveQuestion& question) {
  Tried best = SolveInBatchesOf(1, question);
  if (!std::holds_alternative<Solution>(best)) return best;
  std::int64_t holds = 1;
  std::int64_t fails = std::min(std::get<Solution>(best).requests, kRequestsMax) + 1;
  // Without a device the first try is the answer.
  for (std::int64_t batch = fails - 1; fails - holds > 1; batch = holds + (fails - holds) / 2) {
    Tried tried = SolveInBatchesOf(batch, question);
    const auto* solution = std::get_if<Solution>(&tried);
    if (solution != nullptr && solution->value == batch) {
      holds = batch;
      best = std::move(tried);
    } else {
      fails = batch;
    }
  }
  return best;
}

}  // namespace

Tried SolveOne(const SolveQuestion& question, const GoOn& go_on) {
  if (question.goal == SolveGoal::kRanks) return WithValue(question.goal, SolveRanks(question, go_on));
  if (question.goal == SolveGoal::kRequests && !question.batch_is_said) return SolveWholeBatch(question);
  return SolveAsSaid(question);
}

namespace {

// The least memory of a rank for the same plan; none where the goal is a most.
std::optional<Bytes> NeededFor(const Solution& best, const SolveQuestion& question) {
  if (question.goal != SolveGoal::kRanks) return std::nullopt;
  PlanQuestion asked = question.base;
  asked.options = best.options;
  AskTooMuch(SolveGoal::kMemory, asked.options);
  const Tried tried = TryToPlan(asked);
  const auto* none = std::get_if<NoSolution>(&tried);
  if (none == nullptr || !none->misfit.has_value()) return std::nullopt;
  return none->misfit->needed;
}

// Ranks are looked for with a dcp of each number, unless one is said; then the best of all others is a
// change.
void AddOtherDcp(const SolveQuestion& question, const GoOn& go_on, std::vector<ChangedSolution>& out) {
  SolveQuestion any = question;
  any.dcp_is_said = false;
  const Tried tried = SolveOne(any, go_on);
  const auto* solution = std::get_if<Solution>(&tried);
  if (solution == nullptr || solution->options.dcp == question.base.options.dcp) return;
  out.push_back({absl::StrFormat("--dcp %d", solution->options.dcp), solution->value});
}

std::vector<ChangedSolution> ChangedSolutions(const SolveQuestion& question, const GoOn& go_on) {
  std::vector<ChangedSolution> out;
  const bool ranks = question.goal == SolveGoal::kRanks;
  if (ranks && question.dcp_is_said) AddOtherDcp(question, go_on, out);
  for (const Change& change : ranks ? ChangesBesideDcp(question.base) : ChangesOf(question.base)) {
    if (go_on && !go_on()) break;
    SolveQuestion changed = question;
    change.apply(changed.base);
    const Tried tried = SolveOne(changed, go_on);
    if (const auto* solution = std::get_if<Solution>(&tried)) out.push_back({change.flags, solution->value});
  }
  return out;
}

}  // namespace

SolveAnswer Solve(const SolveQuestion& question, const GoOn& go_on) {
  SolveAnswer answer;
  Tried tried = SolveOne(question, go_on);
  if (auto* solution = std::get_if<Solution>(&tried)) {
    answer.solution = std::move(*solution);
  } else {
    answer.why_not = std::get<NoSolution>(std::move(tried));
  }
  if (question.device.has_value() && question.goal != SolveGoal::kMemory) {
    SolveQuestion best = question;
    best.end = MemoryEnd::kMost;
    Tried other = SolveOne(best, go_on);
    auto* solution = std::get_if<Solution>(&other);
    const bool better =
        solution != nullptr &&
        (!answer.solution.has_value() || IsBetter(question.goal, solution->value, answer.solution->value));
    if (better) answer.at_best = std::move(*solution);
    // Where not even the most is enough, that is why; what the least lacks says little then.
    if (auto* none = std::get_if<NoSolution>(&other); none != nullptr && !answer.solution.has_value())
      answer.why_not = std::move(*none);
    if (answer.at_best.has_value() && !answer.solution.has_value())
      answer.needed = NeededFor(*answer.at_best, question);
  }
  const auto is_better = [&question](const ChangedSolution& a, const ChangedSolution& b) {
    return IsBetter(question.goal, a.value, b.value);
  };
  for (ChangedSolution& changed : ChangedSolutions(question, go_on)) {
    if (answer.solution.has_value() && !is_better(changed, {"", answer.solution->value})) continue;
    InsertSorted(answer.instead, std::move(changed), is_better);
  }
  return answer;
}

}  // namespace kvasir
