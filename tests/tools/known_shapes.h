// Models that logs name and whose configuration is in no folder and no catalogue of ours: facts of their
// model cards.
#ifndef KVASIR_TESTS_TOOLS_KNOWN_SHAPES_H_
#define KVASIR_TESTS_TOOLS_KNOWN_SHAPES_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir {

// Their plain names (planner/request/plain_model_name.h).
[[nodiscard]] std::vector<std::string_view> KnownShapes();

// What a name of KnownShapes is; NotFound for another.
[[nodiscard]] absl::StatusOr<ModelDescription> KnownShape(std::string_view name);

}  // namespace kvasir

#endif  // KVASIR_TESTS_TOOLS_KNOWN_SHAPES_H_
