// A model that is given as a bare list of caches, without a configuration: it can be planned and judged,
// never applied.
#ifndef KVASIR_PLANNER_REQUEST_EXPLICIT_LAYERS_H_
#define KVASIR_PLANNER_REQUEST_EXPLICIT_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/request/cache_layer.h"

namespace kvasir {

// `layers` all have the role; an empty layer name becomes "<role>.layers.<index>", an empty mixer word the
// kind's. `context_tokens` 0: not limited. What a list does not say (hidden, vocabulary) stays 0 and is never
// compared. The digest is that of a text of the layers which no model description can equal.
// `anchor_row`: ModelInput::draft_anchor_row.
[[nodiscard]] ModelInput ExplicitInput(Role role, std::string name, std::vector<CacheLayer> layers,
                                       std::int64_t context_tokens, bool anchor_row = false);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_EXPLICIT_LAYERS_H_
