// A ruleset: the decisions that differ between planners, as pure functions behind the stage types.
#ifndef KVASIR_PLANNER_CORE_RULESET_H_
#define KVASIR_PLANNER_CORE_RULESET_H_

#include <string_view>
#include <variant>

#include "planner/core/grouped.h"
#include "planner/core/outcome.h"
#include "planner/core/packed.h"
#include "planner/core/sized.h"

namespace kvasir {

struct Ruleset {
  std::string_view name;     // what a request asks for: "native"
  std::string_view version;  // what a plan records: "native/1"
  Grouped (*group)(Validated validated);
  Packed (*pack)(Grouped grouped);
  std::variant<Sized, DoesNotFit> (*size)(Packed packed);
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_RULESET_H_
