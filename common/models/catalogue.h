// The built-in models: facts written by us, so that `--target kimi-k3` works without any file.
#ifndef KVASIR_COMMON_MODELS_CATALOGUE_H_
#define KVASIR_COMMON_MODELS_CATALOGUE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir {

struct CatalogueEntry {
  std::string name;      // "kimi-k3"
  std::string hub_name;  // "moonshotai/Kimi-K3"
  bool draft = false;
  std::string summary;  // one line for people
};

// By name.
[[nodiscard]] std::vector<CatalogueEntry> ListCatalogue();

// By catalogue name or hub name, case-insensitive. NotFound lists the nearest names.
[[nodiscard]] absl::StatusOr<ModelDescription> FindInCatalogue(std::string_view name);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_CATALOGUE_H_
