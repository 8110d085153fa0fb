#include "common/models/override_model.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/status_macros.h"
#include "common/models/config_error.h"
#include "common/models/config_fields.h"
#include "common/models/config_object.h"
#include "common/models/config_text.h"

namespace kvasir {
namespace {

constexpr std::string_view kName = "--hf-overrides";
constexpr std::string_view kText = "text_config";
constexpr std::string_view kLength = "max_position_embeddings";

bool IsRope(std::string_view key) {
  return key == "rope_theta" || key == "rope_scaling" || key == "rope_parameters";
}

}  // namespace

absl::StatusOr<std::vector<std::string>> OverrideModel(std::string_view overrides, ModelDescription& model) {
  KVASIR_ASSIGN_OR_RETURN(const nlohmann::json document, ParseConfigText(overrides, kName));
  std::optional<ConfigError> error;
  const ConfigObject root(document, "", error);
  const std::optional<ConfigObject> text = root.ObjectIf(kText);
  ModelDescription changed = model;
  std::vector<std::string> unused;
  for (const ConfigObject& object : {root, text.value_or(root)}) {
    changed.context = object.IntOr(kLength, kTokensRange, changed.context);
    if (object.Has("rope_scaling") || object.Has("rope_parameters")) changed.rope = ReadRope(object);
  }
  if (error.has_value()) return ToStatus(*error, kName);
  for (const auto& [key, value] : document.items()) {
    if (key != kText && key != kLength && !IsRope(key)) unused.push_back(key);
  }
  if (text.has_value()) {
    for (const auto& [key, value] : document[kText].items()) {
      if (key != kLength && !IsRope(key)) unused.push_back(std::string(kText) + "." + key);
    }
  }
  model = std::move(changed);
  return unused;
}

}  // namespace kvasir
