// Zamba2: Mamba-2 in every layer, and in the hybrid ones shared attention before it (two caches in one
// layer). The attention reads the layer's input beside the embedding, twice as wide as the model.
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/mamba2_fields.h"

namespace kvasir {
namespace {

std::vector<bool> ReadHybrid(const ConfigObject& config, std::int64_t layers) {
  std::vector<bool> hybrid(static_cast<std::size_t>(layers), false);
  if (!config.Has("layers_block_type")) {
    for (const std::int64_t i : config.IntList("hybrid_layer_ids", {0, layers - 1}))
      hybrid[static_cast<std::size_t>(i)] = true;
    return hybrid;
  }
  const std::vector<std::string> types = config.TextList("layers_block_type");
  if (types.size() != hybrid.size()) {
    config.Fail(ConfigFault::kContradiction, "layers_block_type",
                absl::StrFormat("expected num_hidden_layers = %d entries", layers));
    return hybrid;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    hybrid[i] = types[i] == "hybrid";
    if (!hybrid[i] && types[i] != "mamba") {
      config.FailValue(ConfigFault::kUnsupported, absl::StrFormat("layers_block_type[%d]", i), types[i],
                       "known: mamba, hybrid");
    }
  }
  return hybrid;
}

}  // namespace

void ReadZamba2(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.context = 4096, .tied = true}, model);
  model.rope = ReadRope(config);
  const std::int64_t expand =
      config.IntOr(config.FirstOf({"mamba_expand", "expansion_factor"}), {1, 1024}, 2);
  const Mamba2Fields fields{.heads = "n_mamba_heads",
                            .head_dim = "mamba_headdim",
                            .state_dim = config.FirstOf({"mamba_d_state", "state_size"}),
                            .groups = "mamba_ngroups",
                            .conv_kernel = config.FirstOf({"mamba_d_conv", "conv_dimension"})};
  const Mamba2Shape mamba = ReadMamba2(config, fields, expand * model.hidden);
  AttentionShape attention;
  attention.heads = config.Int("num_attention_heads", kHeadsRange);
  attention.kv_heads = config.IntOr("num_key_value_heads", kHeadsRange, attention.heads);
  attention.head_dim = config.IntOr("attention_head_dim", kDimRange, 2 * model.hidden / attention.heads);
  attention.value_dim = attention.head_dim;
  const std::string_view width = config.FirstOf({"intermediate_size", "ffn_hidden_size"});
  const MlpShape mlp{.intermediate = config.IntOr(width, kDimRange, 4 * model.hidden)};
  for (const bool hybrid : ReadHybrid(config, ReadLayerCount(config))) {
    if (hybrid) {
      AddLayer(attention, mlp, model.layers);
      model.layers.back().extra = {mamba};
    } else {
      AddLayer(mamba, {}, model.layers);
    }
  }
}

}  // namespace kvasir
