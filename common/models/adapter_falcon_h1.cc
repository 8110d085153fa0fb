// Falcon-H1: attention and Mamba-2 side by side in every layer (two caches).
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/mamba2_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadFalconH1(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.context = 8192}, model);
  model.rope = ReadRope(config);
  const AttentionShape attention = ReadAttention(config, model.hidden);
  const std::int64_t expand = config.IntOr("mamba_expand", {1, 1024}, 2);
  const std::int64_t inner = config.IntOr("mamba_d_ssm", kDimRange, expand * model.hidden);
  const Mamba2Shape mamba = ReadMamba2(config, {}, inner);
  const MlpShape mlp = ReadDense(config);
  const std::int64_t layers = ReadLayerCount(config);
  for (std::int64_t i = 0; i < layers; ++i) {
    AddLayer(attention, mlp, model.layers);
    model.layers.back().extra = {mamba};
  }
}

}  // namespace kvasir
