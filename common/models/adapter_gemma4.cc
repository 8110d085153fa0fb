// Gemma-4: full layers have their own head width and key-value heads; the small models share the last layers'
// caches, the 26B model has experts beside the dense MLP.
#include <cstddef>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"
#include "common/models/shared_caches.h"

namespace kvasir {
namespace {

MlpShape ReadMlp(const ConfigObject& config) {
  MlpShape mlp;
  if (config.BoolOr("enable_moe_block", false)) {
    const std::string_view width = config.FirstOf({"moe_intermediate_size", "expert_intermediate_size"});
    mlp = ReadExperts(
        config,
        {.experts = "num_experts", .per_token = "top_k_experts", .shared = "", .intermediate = width});
  }
  mlp.intermediate = config.Int("intermediate_size", kDimRange);
  return mlp;
}

}  // namespace

void ReadGemma4(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.vocab = 262144, .context = 131072, .tied = true}, model);
  model.rope = ReadRope(config);
  model.layer_embedding = config.IntOr("hidden_size_per_layer_input", kDimOrNoneRange, 0);
  const AttentionShape sliding = ReadAttention(config, model.hidden);
  AttentionShape full = sliding;
  full.kv_heads = config.IntOr("num_global_key_value_heads", kHeadsRange, sliding.kv_heads);
  full.head_dim = config.IntOr("global_head_dim", kDimRange, sliding.head_dim);
  full.value_dim = full.head_dim;
  const MlpShape mlp = ReadMlp(config);
  for (const std::int64_t window : ReadWindowsByPattern(config, ReadLayerCount(config), 6)) {
    AttentionShape attention = window > 0 ? sliding : full;
    attention.window = window;
    AddLayer(attention, mlp, model.layers);
  }
  const std::int64_t first_shared = ShareLastCaches(config, model);
  if (!config.BoolOr("use_double_wide_mlp", false)) return;
  for (auto i = static_cast<std::size_t>(first_shared); i < model.layers.size(); ++i)
    model.layers[i].mlp.intermediate *= 2;
}

}  // namespace kvasir
