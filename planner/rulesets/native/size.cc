#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "planner/core/build_report.h"
#include "planner/rulesets/native/does_not_fit.h"
#include "planner/rulesets/native/native.h"
#include "planner/rulesets/native/size_problem.h"

namespace kvasir::native {
namespace {

std::vector<CapacityRow> Capacities(const Packed& packed, const SizedVariant& option) {
  std::vector<CapacityRow> rows;
  for (const std::int64_t context : ReportContexts(packed.request())) {
    rows.push_back(CapacityAt(option.loads, option.parents, context, packed.request().prefill_chunk));
  }
  return rows;
}

// The variants that the request's choice leaves. Without a rollback there is one variant and nothing to
// choose.
std::vector<std::size_t> AllowedVariants(const Packed& packed) {
  const RollbackChoice choice = packed.request().rollback;
  std::vector<std::size_t> allowed;
  for (std::size_t i = 0; i < packed.variants.size(); ++i) {
    const StateRollback rollback = packed.variants[i].rollback;
    if ((choice == RollbackChoice::kSnapshots && rollback == StateRollback::kReplay) ||
        (choice == RollbackChoice::kReplay && rollback == StateRollback::kSnapshots)) {
      continue;
    }
    allowed.push_back(i);
  }
  return allowed;
}

// More sequences of the context first, then fewer bytes, then the earlier variant: snapshots before replay.
std::optional<std::size_t> Choose(const Packed& packed, const std::vector<std::size_t>& allowed,
                                  const std::vector<SizedVariant>& options) {
  const PlanRequest& request = packed.request();
  std::optional<std::size_t> best;
  std::tuple<std::int64_t, Bytes> best_key;
  for (const std::size_t place : allowed) {
    const SizedVariant& option = options[place];
    if (!option.solution.has_value()) continue;
    const CapacityRow row =
        CapacityAt(option.loads, option.parents, request.context_tokens, request.prefill_chunk);
    const std::tuple<std::int64_t, Bytes> key(-row.requests, row.bytes_per_request);
    if (best.has_value() && key >= best_key) continue;
    best = place;
    best_key = key;
  }
  return best;
}

std::vector<RollbackOption> Describe(const Packed& packed, const std::vector<SizedVariant>& options,
                                     std::size_t chosen) {
  if (!packed.grouped.validated.rolls_back) return {};
  std::vector<RollbackOption> out;
  for (const StateRollback rollback : {StateRollback::kSnapshots, StateRollback::kReplay}) {
    RollbackOption& described = out.emplace_back();
    described.rollback = rollback;
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (packed.variants[i].rollback != rollback || !options[i].solution.has_value()) continue;
      described.possible = true;
      described.chosen = i == chosen;
      described.capacity = Capacities(packed, options[i]);
    }
  }
  return out;
}

}  // namespace

std::variant<Sized, DoesNotFit> SizeArena(Packed packed) {
  std::vector<SizedVariant> options;
  std::vector<std::int64_t> bounds;
  for (const PackedVariant& variant : packed.variants) {
    const SearchProblem problem = ProblemOf(packed, variant, QuestionOf(packed));
    bounds.push_back(problem.parent_bytes_max);
    options.push_back(SizeVariant(packed, variant, problem));
  }
  const std::vector<std::size_t> allowed = AllowedVariants(packed);
  const std::optional<std::size_t> chosen = Choose(packed, allowed, options);
  if (!chosen.has_value()) return ExplainMisfit(packed, allowed);
  const SizeSolution& solution = *options[*chosen].solution;
  Sized sized;
  sized.variant = *chosen;
  sized.parent_bytes = solution.key.parent_bytes;
  sized.parents = options[*chosen].parents;
  for (std::size_t i = 0; i < solution.pools.size(); ++i) {
    SizedPool& pool = sized.pools.emplace_back();
    pool.block = packed.variants[*chosen].pools[i].blocks[solution.pools[i].block];
    pool.blocks_per_parent = solution.pools[i].blocks_per_parent;
    pool.stride_bytes = sized.parent_bytes / pool.blocks_per_parent;
    pool.pages = PlacePages(packed.grouped, i, packed.variants[*chosen].rollback, pool.block);
  }
  sized.rollback_options = Describe(packed, options, *chosen);
  sized.choice = {.layouts_compared = solution.compared,
                  .cost_512 = solution.key.cost_512,
                  .parent_bytes_max = Bytes(bounds[*chosen])};
  sized.packed = std::move(packed);
  return sized;
}

}  // namespace kvasir::native
