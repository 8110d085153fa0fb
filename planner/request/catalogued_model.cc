#include "planner/request/catalogued_model.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/models/catalogue.h"
#include "common/models/override_model.h"
#include "planner/request/plain_model_name.h"

namespace kvasir {
namespace {

std::optional<CatalogueEntry> CopiedFrom(std::string_view name) {
  const std::string plain = PlainModelName(name);
  for (const CatalogueEntry& entry : ListCatalogue()) {
    if (!plain.empty() && PlainModelName(entry.hub_name) == plain) return entry;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<CataloguedModel> FindCataloguedModel(std::string_view name,
                                                    const std::optional<std::string>& overrides,
                                                    std::vector<std::string>& notes) {
  CataloguedModel found;
  absl::StatusOr<ModelDescription> model = FindInCatalogue(name);
  const std::optional<CatalogueEntry> copied = model.ok() ? std::nullopt : CopiedFrom(name);
  if (copied.has_value()) {
    model = FindInCatalogue(copied->name);
    found.is_copy = true;
    notes.push_back(absl::StrFormat("%s is taken for %s: copies keep the caches of the original",
                                    std::string(name), copied->hub_name));
  }
  KVASIR_ASSIGN_OR_RETURN(found.model, std::move(model));
  if (!overrides.has_value()) return found;
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::string> unused, OverrideModel(*overrides, found.model));
  for (const std::string& key : unused) {
    notes.push_back(absl::StrFormat(
        "--hf-overrides %s is not used: the model comes from the catalogue; its config.json would take it",
        key));
  }
  return found;
}

}  // namespace kvasir
