// GLM-4.5 and 4.6, dots.llm1: grouped-query attention, experts after the first dense layers.
#include <cstddef>
#include <vector>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadGlm4Moe(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.context = 131072}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  const std::int64_t layers = ReadLayerCount(config);
  const LayerMlps mlps = ReadMlps(config, {}, layers);
  const std::vector<std::int64_t> windows = ReadWindows(config, layers, WindowSwitch::kIfPresent);
  for (std::int64_t i = 0; i < layers; ++i) {
    attention.window = windows[static_cast<std::size_t>(i)];
    AddLayer(attention, mlps.At(i), model.layers);
  }
  AddMtpLayers(config, "num_nextn_predict_layers", model.layers.back(), model);
}

}  // namespace kvasir
