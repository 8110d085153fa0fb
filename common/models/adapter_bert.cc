// BERT and its relatives: an encoder alone. Every layer sees the whole input in one pass and keeps nothing.
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadBert(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.eps_field = "layer_norm_eps", .context = 512}, model);
  const AttentionShape shape = ReadAttention(config, model.hidden);
  const EncoderAttentionShape attention{shape.heads, shape.kv_heads, shape.head_dim};
  MlpShape mlp = ReadDense(config);
  mlp.gated = false;
  const std::int64_t layers = ReadLayerCount(config);
  for (std::int64_t i = 0; i < layers; ++i) AddLayer(attention, mlp, model.layers);
}

}  // namespace kvasir
