#include "planner/rulesets/native/native.h"

namespace kvasir::native {

Ruleset NativeRuleset() {
  return {
      .name = "native", .version = "native/1", .group = GroupLayers, .pack = PackBlocks, .size = SizeArena};
}

}  // namespace kvasir::native
