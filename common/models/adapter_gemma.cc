// Gemma-2 and Gemma-3: sliding windows with a full layer in every second (Gemma-2) or sixth layer. Published
// files leave out much that the classes fill in.
#include <vector>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

void ReadLayers(const ConfigObject& config, const std::vector<std::int64_t>& windows,
                const AttentionShape& shape, ModelDescription& model) {
  AttentionShape attention = shape;
  const MlpShape mlp = ReadDense(config);
  for (const std::int64_t window : windows) {
    attention.window = window;
    AddLayer(attention, mlp, model.layers);
  }
}

}  // namespace

void ReadGemma2(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.vocab = 256000, .context = 8192, .tied = true}, model);
  model.rope = ReadRope(config);
  const AttentionShape attention =
      ReadAttention(config, model.hidden, {.heads = 8, .kv_heads = 4, .head_dim = 256});
  ReadLayers(config, ReadWindowsByPattern(config, ReadLayerCount(config), 2), attention, model);
}

void ReadGemma3(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.vocab = 262208, .context = 131072, .tied = true}, model);
  model.rope = ReadRope(config);
  model.rope.local_theta = config.RealOr("rope_local_base_freq", {0.0, 1e12}, model.rope.local_theta);
  const AttentionShape attention =
      ReadAttention(config, model.hidden, {.heads = 8, .kv_heads = 4, .head_dim = 256});
  const std::string_view field = config.FirstOf({"sliding_window_pattern", "_sliding_window_pattern"});
  const std::int64_t pattern = config.IntOr(field, {1, kLayersMax}, 6);
  ReadLayers(config, ReadWindowsByPattern(config, ReadLayerCount(config), pattern), attention, model);
}

}  // namespace kvasir
