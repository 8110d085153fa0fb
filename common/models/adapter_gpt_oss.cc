// gpt-oss: a window in every even layer, by index whatever layer_types says (as vLLM reads it); attention
// sinks; experts throughout.
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadGptOss(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  attention.sinks = true;
  const MlpShape mlp = ReadExperts(
      config, {.experts = "num_local_experts", .shared = "", .intermediate = "intermediate_size"});
  const std::int64_t window = config.Int("sliding_window", kTokensRange);
  const std::int64_t layers = ReadLayerCount(config);
  for (std::int64_t i = 0; i < layers; ++i) {
    attention.window = i % 2 == 0 ? window : 0;
    AddLayer(attention, mlp, model.layers);
  }
}

}  // namespace kvasir
