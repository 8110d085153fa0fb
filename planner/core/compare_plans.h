// Two plans beside each other: what each admits at the same lengths, then the fields in which they differ.
// A gate asks one question of it: does any length lose more requests than it may?
#ifndef KVASIR_PLANNER_CORE_COMPARE_PLANS_H_
#define KVASIR_PLANNER_CORE_COMPARE_PLANS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/plan/plan.h"
#include "planner/core/report.h"

namespace kvasir {

// One length: 8192, 32768, 131072 as far as either plan goes, and the longest of each.
struct CapacityChange {
  std::int64_t context_tokens = 0;
  CapacityRow before;  // no requests where the plan's longest sequence is shorter
  CapacityRow after;
  friend bool operator==(const CapacityChange&, const CapacityChange&) = default;
};

// What a field says: what was asked, how it is laid out, or whose bytes they are.
enum class FieldKind : std::int8_t { kAsked, kLayout, kBytes };
// asked | layout | bytes
[[nodiscard]] std::string_view FieldKindName(FieldKind kind);

struct FieldChange {
  FieldKind kind = FieldKind::kAsked;
  std::string field;   // "topology.dcp", "pool tokens: block_tokens", "payload.target.mla"
  std::string before;  // empty: not there
  std::string after;
  friend bool operator==(const FieldChange&, const FieldChange&) = default;
};

struct PlanComparison {
  std::vector<CapacityChange> capacity;  // by length
  std::vector<FieldChange> fields;       // by kind, then in the order of a plan's text
  friend bool operator==(const PlanComparison&, const PlanComparison&) = default;
};

// VerifyPlan must accept both. Equal plans differ in nothing, other plans in one field or more: where all
// that are compared are alike, "text" has the first line of each plan's text that is not the other's. Bytes
// are decimal numbers.
[[nodiscard]] PlanComparison ComparePlans(const Plan& before, const Plan& after);

// Whether the length admits fewer requests than before by more than `limit` hundredths of a percent.
[[nodiscard]] bool LosesMoreThan(const CapacityChange& change, std::int64_t limit);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_COMPARE_PLANS_H_
