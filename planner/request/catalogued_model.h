// A launch's model from the catalogue: by name, or as a copy of an entry, with what --hf-overrides lays over
// it.
#ifndef KVASIR_PLANNER_REQUEST_CATALOGUED_MODEL_H_
#define KVASIR_PLANNER_REQUEST_CATALOGUED_MODEL_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir {

struct CataloguedModel {
  ModelDescription model;
  bool is_copy = false;  // of the model: its own configuration may say more of its length
};

// NotFound where neither the name nor what it is a copy of is in the catalogue; InvalidArgument for overrides
// of another type or range. `notes` gets a sentence for a copy and for each override that changes nothing.
[[nodiscard]] absl::StatusOr<CataloguedModel> FindCataloguedModel(std::string_view name,
                                                                  const std::optional<std::string>& overrides,
                                                                  std::vector<std::string>& notes);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_CATALOGUED_MODEL_H_
