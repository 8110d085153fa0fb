// Explicit layers of the wire -> the front end's caches. Checks every value once; what rules say of the
// combination is the planner's business.
#ifndef KVASIR_PLANNER_SERVICE_CONVERT_LAYERS_H_
#define KVASIR_PLANNER_SERVICE_CONVERT_LAYERS_H_

#include "absl/status/statusor.h"
#include "common/plan/keys.h"
#include "kvasir/plan/v1/options.pb.h"
#include "planner/request/cache_layer.h"

namespace kvasir {

// InvalidArgument with the field's path inside the list: "layers[3].latent.head_count". `role` is whose list
// it is.
[[nodiscard]] absl::StatusOr<ModelInput> LayersFromProto(const plan::v1::LayerSpecList& list, Role role);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_CONVERT_LAYERS_H_
