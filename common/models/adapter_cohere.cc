// Cohere Command: R and R+ (no window), Command A and R7B (Cohere2: every fourth layer is full).
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

void ReadCommand(const ConfigObject& config, bool windowed, ModelDescription& model) {
  ReadModelFields(config, {.eps_field = "layer_norm_eps", .vocab = 256000, .context = 8192, .tied = true},
                  model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  const MlpShape mlp = ReadDense(config);
  const std::int64_t layers = ReadLayerCount(config);
  const std::int64_t pattern = windowed ? config.IntOr("sliding_window_pattern", {1, kLayersMax}, 4) : 1;
  for (const std::int64_t window : ReadWindowsByPattern(config, layers, pattern)) {
    attention.window = window;
    AddLayer(attention, mlp, model.layers);
  }
}

}  // namespace

void ReadCohere(const ConfigObject& config, ModelDescription& model) { ReadCommand(config, false, model); }
void ReadCohere2(const ConfigObject& config, ModelDescription& model) { ReadCommand(config, true, model); }

}  // namespace kvasir
