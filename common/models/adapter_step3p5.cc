// Step-3.5 and 3.7 Flash: windows by layer_types, experts after the first dense layers. Layers of multi-token
// prediction go on with the pattern: a full layer, then three with a window.
#include <cstddef>
#include <vector>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadStep3p5(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  const std::int64_t layers = ReadLayerCount(config);
  const ExpertFields fields{.experts = config.FirstOf({"num_experts", "moe_num_experts"}),
                            .per_token = config.FirstOf({"num_experts_per_tok", "moe_top_k"}),
                            .shared_intermediate = "share_expert_dim"};
  const LayerMlps mlps = ReadMlps(config, fields, layers);
  const std::vector<std::int64_t> windows = ReadWindowsByPattern(config, layers, 1);
  for (std::int64_t i = 0; i < layers; ++i) {
    attention.window = windows[static_cast<std::size_t>(i)];
    AddLayer(attention, mlps.At(i), model.layers);
  }
  AddMtpLayers(config, "num_nextn_predict_layers", model.layers.back(), model);
  for (ModelLayer& layer : model.mtp_layers) {
    attention.window = (layers + layer.index) % 4 == 0 ? 0 : config.IntOr("sliding_window", kTokensRange, 0);
    layer.mixer = attention;
  }
}

}  // namespace kvasir
