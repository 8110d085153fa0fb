// Stage 2: a request that no rule refuses. The rules stand in rules_*.cc by topic; each checks what it needs
// before it computes, so that all independent refusals of a request are found together.
#ifndef KVASIR_PLANNER_CORE_VALIDATED_H_
#define KVASIR_PLANNER_CORE_VALIDATED_H_

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "planner/core/canonical.h"
#include "planner/core/outcome.h"

namespace kvasir {

// What a pool's layers have in common; the key of a pool.
using PoolKey = std::pair<LifetimeKey, bool>;  // lifetime, sharded over context

struct Validated {
  Canonical canonical;
  // The page sizes in tokens that all backends of a pool's layers declare, those that the interleave does not
  // divide left out of sharded pools; ascending. Per-token and window pools only.
  std::map<PoolKey, std::vector<std::int64_t>> page_tokens;
  bool rolls_back = false;  // recurrent layers and a draft

  [[nodiscard]] const PlanRequest& request() const { return canonical.request; }
};

[[nodiscard]] std::variant<Validated, Refusals> Validate(Canonical canonical);
[[nodiscard]] std::string ToText(const Validated& validated);
// Internal: a fact that later stages rely on does not hold.
[[nodiscard]] absl::Status Verify(const Validated& validated);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_VALIDATED_H_
