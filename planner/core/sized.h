// Stage 5: the numbers of the arena: one block per pool, its stride, the parent, how many parents. Made by
// the ruleset.
#ifndef KVASIR_PLANNER_CORE_SIZED_H_
#define KVASIR_PLANNER_CORE_SIZED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/core/capacity.h"
#include "planner/core/packed.h"
#include "planner/core/report.h"

namespace kvasir {

// Parallel to Grouped::pools.
struct SizedPool {
  BlockCandidate block;
  std::int64_t stride_bytes = 0;
  std::int64_t blocks_per_parent = 0;
  std::vector<PlacedPage> pages;
};

struct Sized {
  Packed packed;
  std::size_t variant = 0;  // of packed.variants
  std::int64_t parent_bytes = 0;
  std::int64_t parents = 0;
  std::vector<SizedPool> pools;
  std::vector<RollbackOption> rollback_options;
  SizeChoice choice;

  [[nodiscard]] const PackedVariant& chosen() const { return packed.variants[variant]; }
  [[nodiscard]] std::int64_t arena_bytes() const {
    return packed.grouped.validated.canonical.arena_bytes.value();
  }
};

[[nodiscard]] std::vector<PoolLoad> LoadsOf(const Sized& sized);
[[nodiscard]] std::string ToText(const Sized& sized);
// Internal: P is not k * stride for a pool, a stride is no multiple of its unit or below its block, a block
// was not among the candidates, the parents do not fit the arena, the bound on P is broken, or min_requests
// are not admitted.
[[nodiscard]] absl::Status Verify(const Sized& sized);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_SIZED_H_
