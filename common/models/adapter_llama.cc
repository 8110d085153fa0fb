// Llama and its many relatives (Mistral, Phi-3, Yi, Seed-OSS, Hunyuan, MiMo): grouped-query attention with a
// dense MLP, full or with a sliding window.
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadLlama(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  const MlpShape mlp = ReadDense(config);
  for (const std::int64_t window : ReadWindows(config, ReadLayerCount(config), WindowSwitch::kIfPresent)) {
    attention.window = window;
    AddLayer(attention, mlp, model.layers);
  }
  AddMtpLayers(config, "num_nextn_predict_layers", model.layers.back(), model);
}

}  // namespace kvasir
