#include "common/models/shared_caches.h"

#include <cstddef>
#include <optional>
#include <variant>

#include "common/base/limits.h"

namespace kvasir {

std::int64_t ShareLastCaches(const ConfigObject& config, ModelDescription& model) {
  const auto layers = static_cast<std::int64_t>(model.layers.size());
  const std::int64_t first = layers - config.IntOr("num_kv_shared_layers", {0, layers - 1}, 0);
  for (std::int64_t i = first; i < layers; ++i) {
    auto& attention = std::get<AttentionShape>(model.layers[static_cast<std::size_t>(i)].mixer);
    for (std::int64_t owner = first - 1; owner >= 0 && !attention.shares_with.has_value(); --owner) {
      const auto& owned = std::get<AttentionShape>(model.layers[static_cast<std::size_t>(owner)].mixer);
      if (owned.window == attention.window) attention.shares_with = static_cast<std::int32_t>(owner);
    }
    if (!attention.shares_with.has_value()) {
      config.Fail(ConfigFault::kContradiction, "num_kv_shared_layers",
                  "a layer that shares has no layer of its kind before it");
    }
  }
  return first;
}

}  // namespace kvasir
