// Mixtral and MiniMax-M2: experts in every layer, as wide as intermediate_size says.
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadMixtral(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  const MlpShape mlp = ReadExperts(config, {.experts = "num_local_experts",
                                            .shared = "",
                                            .intermediate = "intermediate_size",
                                            .shared_intermediate = "shared_intermediate_size"});
  for (const std::int64_t window : ReadWindows(config, ReadLayerCount(config), WindowSwitch::kIfPresent)) {
    attention.window = window;
    AddLayer(attention, mlp, model.layers);
  }
}

}  // namespace kvasir
