// ERNIE-4.5: experts between moe_layer_start_index and moe_layer_end_index, every moe_layer_interval-th
// layer.
#include <cstddef>
#include <utility>
#include <vector>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadErnieMoe(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.tied = true}, model);
  model.rope = ReadRope(config);
  const AttentionShape attention = ReadAttention(config, model.hidden);
  const std::int64_t layers = ReadLayerCount(config);
  const std::int64_t start = config.IntOr("moe_layer_start_index", {0, kLayersMax}, 1);
  const std::int64_t named_end = config.IntOr("moe_layer_end_index", {-1, kLayersMax}, -1);
  const std::int64_t end = named_end < 0 ? layers - 1 : named_end;
  const std::int64_t every = config.IntOr("moe_layer_interval", {1, kLayersMax}, 1);
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  for (std::int64_t i = start; i < layers && i <= end; ++i) {
    sparse[static_cast<std::size_t>(i)] = (i + 1) % every == 0;
  }
  const LayerMlps mlps = ReadMlpsOf(
      config, {.experts = "moe_num_experts", .per_token = "moe_k", .shared = "moe_num_shared_experts"},
      std::move(sparse), "intermediate_size");
  for (std::int64_t i = 0; i < layers; ++i) AddLayer(attention, mlps.At(i), model.layers);
  AddMtpLayers(config, "num_nextn_predict_layers", model.layers.back(), model);
}

}  // namespace kvasir
