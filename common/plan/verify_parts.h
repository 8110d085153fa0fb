// The topics of VerifyPlan, in the order they run: a later one relies on what the earlier ones have shown.
// Private to verify*.cc.
#ifndef KVASIR_COMMON_PLAN_VERIFY_PARTS_H_
#define KVASIR_COMMON_PLAN_VERIFY_PARTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/plan/plan.h"

namespace kvasir::verify {

// InvalidArgument "<field> is <value>, must be <rule>".
[[nodiscard]] absl::Status Broken(const std::string& field, const std::string& value,
                                  const std::string& rule);
[[nodiscard]] absl::Status CheckEqual(const std::string& field, std::int64_t value, std::int64_t want,
                                      std::string_view reason);
[[nodiscard]] absl::Status CheckRange(const std::string& field, std::int64_t value, std::int64_t min,
                                      std::int64_t max);
[[nodiscard]] absl::Status CheckName(const std::string& field, const std::string& name);

// Groups: ids, names, layers, keys, roles, block rows, rollback. After it, sizes of layouts are within
// limits.
[[nodiscard]] absl::Status Groups(const Plan& plan);
// Pools: lifetimes, geometry, pages inside blocks, blocks inside parents.
[[nodiscard]] absl::Status Pools(const Plan& plan);
// Graphs: exactly the passes and buckets that the plan's limits call for, over the groups of the pass's role.
[[nodiscard]] absl::Status Graphs(const Plan& plan);
// Attribution: owners that exist, sorted, summing to the arena.
[[nodiscard]] absl::Status Attribution(const Plan& plan);

}  // namespace kvasir::verify

#endif  // KVASIR_COMMON_PLAN_VERIFY_PARTS_H_
