// May two layers share memory, may they share metadata? Total functions: "compatible", or a refusal that
// names the rule, the field, both layers and both values. Nothing is ever merged to make an answer positive.
#ifndef KVASIR_PLANNER_CORE_COMPATIBILITY_H_
#define KVASIR_PLANNER_CORE_COMPATIBILITY_H_

#include <string>
#include <variant>
#include <vector>

#include "planner/core/layer_spec.h"
#include "planner/core/refusal.h"

namespace kvasir {

struct Compatible {
  friend bool operator==(const Compatible&, const Compatible&) = default;
};
using Compatibility = std::variant<Compatible, Refusal>;

// Equal lifetime and equal sharding over context: blocks of one table may hold both (PoolKeysDiffer
// otherwise). That their backends declare a common page size is a property of the whole pool and checked
// there.
[[nodiscard]] Compatibility MayShareBlocks(const LayerSpec& a, const LayerSpec& b);

// Blocks as above, and equal behaviour, layout kind and mixer word: one metadata serves both
// (GroupKeysDiffer).
[[nodiscard]] Compatibility MayShareMetadata(const LayerSpec& a, const LayerSpec& b);

struct FieldDifference {
  std::string field;
  std::string a;
  std::string b;
};
// Every field in which two keys differ, with both values as text; empty exactly if the keys are equal.
[[nodiscard]] std::vector<FieldDifference> Differences(const BehaviourKey& a, const BehaviourKey& b);
[[nodiscard]] std::vector<FieldDifference> Differences(const LifetimeKey& a, const LifetimeKey& b);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_COMPATIBILITY_H_
