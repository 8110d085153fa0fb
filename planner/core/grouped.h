// Stage 3: which layers share blocks (pools) and which share metadata (groups). Made by the ruleset.
#ifndef KVASIR_PLANNER_CORE_GROUPED_H_
#define KVASIR_PLANNER_CORE_GROUPED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/core/validated.h"

namespace kvasir {

// Places in request().layers, ascending; never empty.
using LayerPlaces = std::vector<std::int32_t>;

struct GroupedGroup {
  std::string name;  // "target.mla"
  LayerPlaces layers;
};

struct GroupedPool {
  std::string name;  // "tokens"
  PoolKey key;
  std::vector<GroupedGroup> groups;
};

// The order of pools and groups means nothing yet: the next stage fixes it.
struct Grouped {
  Validated validated;
  std::vector<GroupedPool> pools;

  [[nodiscard]] const LayerSpec& layer(std::int32_t place) const {
    return validated.request().layers[static_cast<std::size_t>(place)];
  }
};

[[nodiscard]] std::string ToText(const Grouped& grouped);
// Internal: a layer is missing or in two groups, a group mixes layers that may not share metadata, a pool
// mixes layers that may not share blocks, or two groups of a pool could have been one.
[[nodiscard]] absl::Status Verify(const Grouped& grouped);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_GROUPED_H_
