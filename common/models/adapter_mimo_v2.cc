// MiMo-V2: hybrid_layer_pattern marks the layers with a window, which have heads and widths of their own.
// Keys and values differ in width. The file's attention_chunk_size says nothing: the engine deletes it.
#include <cstddef>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadMimoV2(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.eps_field = "layernorm_epsilon"}, model);
  model.rope = ReadRope(config);
  model.rope.local_theta = config.RealOr("swa_rope_theta", {0.0, 1e12}, 0.0);
  AttentionShape full = ReadAttention(config, model.hidden);
  full.value_dim = config.IntOr("v_head_dim", kDimRange, full.head_dim);
  full.sinks = config.BoolOr("add_full_attention_sink_bias", false);
  AttentionShape sliding = full;
  sliding.heads = config.IntOr("swa_num_attention_heads", kHeadsRange, full.heads);
  sliding.kv_heads = config.IntOr("swa_num_key_value_heads", kHeadsRange, full.kv_heads);
  sliding.head_dim = config.IntOr("swa_head_dim", kDimRange, full.head_dim);
  sliding.value_dim = config.IntOr("swa_v_head_dim", kDimRange, full.value_dim);
  sliding.sinks = config.BoolOr("add_swa_attention_sink_bias", false);
  sliding.window = config.Int(config.FirstOf({"sliding_window_size", "sliding_window"}), kTokensRange);
  const std::int64_t layers = ReadLayerCount(config);
  const LayerMlps mlps = ReadMlps(config, {}, layers);
  const std::vector<std::int64_t> pattern = config.IntList("hybrid_layer_pattern", {0, 1});
  if (pattern.size() != static_cast<std::size_t>(layers)) {
    config.Fail(ConfigFault::kContradiction, "hybrid_layer_pattern",
                absl::StrFormat("expected num_hidden_layers = %d entries", layers));
    return;
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    AddLayer(pattern[static_cast<std::size_t>(i)] == 1 ? sliding : full, mlps.At(i), model.layers);
  }
}

}  // namespace kvasir
