// MiniCPM3: latent projections, but the engine caches every head's keys and values, with values filled up to
// the keys' width (vllm/model_executor/models/minicpm3.py). So the layer is plain attention here; its weights
// are counted as plain matrices too, which is more than the factored ones take.
#include <cstdint>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadMinicpm3(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.tied = true}, model);
  model.rope = ReadRope(config);
  AttentionShape attention;
  attention.heads = config.Int("num_attention_heads", kHeadsRange);
  attention.kv_heads = attention.heads;  // whatever num_key_value_heads says: each head has rows of its own
  attention.head_dim = config.Int("qk_nope_head_dim", kDimRange) + config.Int("qk_rope_head_dim", kDimRange);
  attention.value_dim = attention.head_dim;
  const MlpShape mlp = ReadDense(config);
  const std::int64_t layers = ReadLayerCount(config);
  for (std::int64_t i = 0; i < layers; ++i) AddLayer(attention, mlp, model.layers);
}

}  // namespace kvasir
