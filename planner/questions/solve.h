// The inverse of planning: the largest context, the most requests, the fewest ranks or the least memory with
// which the rest of a question fits. Every answer was planned: what is returned is a plan that admits what
// was asked.
#ifndef KVASIR_PLANNER_QUESTIONS_SOLVE_H_
#define KVASIR_PLANNER_QUESTIONS_SOLVE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/core/outcome.h"
#include "planner/core/refusal.h"
#include "planner/questions/plan_question.h"

namespace kvasir {

// What is looked for. The other three stand in the question: requests as min_requests, the context as the
// longest of contexts, ranks as tp and dcp, memory as kv_memory_bytes or the device.
enum class SolveGoal : std::int8_t { kContext, kRequests, kRanks, kMemory };
// context | requests | ranks | memory
[[nodiscard]] std::string_view SolveGoalName(SolveGoal goal);
[[nodiscard]] std::optional<SolveGoal> ParseSolveGoal(std::string_view word);

struct SolveQuestion {
  PlanQuestion base;
  SolveGoal goal = SolveGoal::kContext;
  // What a rank has for caches follows from it, for each number of ranks, as a range.
  std::optional<GpuRow> device;
  MemoryEnd end = MemoryEnd::kLeast;
  std::int64_t ranks_max = 8;  // kRanks: as many are tried
  bool dcp_is_said = false;    // kRanks: only this dcp; else every divisor is tried
  // kRequests: options.max_requests stays as it is; else all that are found run as one batch, for which a
  // device keeps memory of its own.
  bool batch_is_said = false;
};

struct Solution {
  std::int64_t value = 0;  // tokens, requests, ranks, or bytes of each rank
  PlanOptions options;     // with which the question was planned
  std::int64_t context_tokens = 0;
  std::int64_t requests = 0;             // of context_tokens that the plan admits; at least what was asked
  std::int64_t guaranteed_requests = 0;  // the same under any churn
  Planned planned;
};

// Why there is none: refusals, or how much is missing, or that the device holds no more than the weights.
struct NoSolution {
  std::vector<Refusal> refusals;
  std::optional<DoesNotFit> misfit;
  std::string device;  // a sentence; empty: the device is not why
  // kRanks: what this is said of, the nearest to fitting of those that were tried; else 0.
  std::int64_t tp = 0;
  std::int64_t dcp = 0;
};

// A single change of the question and what the goal then is.
struct ChangedSolution {
  std::string flags;
  std::int64_t value = 0;
};

struct SolveAnswer {
  std::optional<Solution> solution;
  std::optional<Solution> at_best;  // with a device: where it leaves as much as it can; nullopt: no better
  NoSolution why_not;  // where there is none; with a device, and no at_best: at the most that it leaves
  std::optional<Bytes> needed;  // kRanks, where there is at_best alone: what each of its ranks must have
  std::vector<ChangedSolution> instead;  // changes that make the answer better, best first
};

[[nodiscard]] SolveAnswer Solve(const SolveQuestion& question, const GoOn& go_on = {});

}  // namespace kvasir

#endif  // KVASIR_PLANNER_QUESTIONS_SOLVE_H_
