// How many blocks of a pool a sequence takes: the arithmetic of admission (DESIGN section 2.1), used by the
// planner for capacity and by the engine before it admits. All arguments are bounded by common/base/limits.h.
#ifndef KVASIR_COMMON_PLAN_ADMISSION_H_
#define KVASIR_COMMON_PLAN_ADMISSION_H_

#include <cstdint>

#include "common/plan/plan.h"

namespace kvasir {

// What decides a pool's demand for blocks.
struct PoolDemand {
  LifetimeKey lifetime;
  std::int64_t context_ranks = 1;  // ranks that the tokens are spread over; 1 when replicated
  std::int64_t block_tokens = 0;   // rows per page on one rank
  std::int64_t parts = 1;
  std::int64_t block_rows = 1;  // most query rows of a decoding pass over the pool
};

[[nodiscard]] PoolDemand DemandOf(const Plan& plan, const PlanPool& pool);

// Blocks that a sequence of `tokens` tokens, prompt and output together, reserves for its whole life.
//   per_token       ceil(tokens / (block_tokens * context_ranks)): one table entry covers that many tokens
//   bounded_window  what window + block_rows - 1 live tokens can touch at any alignment, and never more than
//   a
//                   per-token pool would take
//   per_sequence    copies * parts
[[nodiscard]] std::int64_t BlocksForSequence(const PoolDemand& demand, std::int64_t tokens);

// Blocks charged once per bounded-window pool, for the one prefill chunk in flight; 0 for the other pools.
[[nodiscard]] std::int64_t BlocksForPrefill(const PoolDemand& demand, std::int64_t prefill_chunk);

}  // namespace kvasir

#endif  // KVASIR_COMMON_PLAN_ADMISSION_H_
