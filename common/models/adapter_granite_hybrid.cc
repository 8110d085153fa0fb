// Granite-4 and Bamba: Mamba-2 with a few attention layers. Granite names each layer and may have experts
// beside a shared MLP; Bamba lists the attention layers.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/mamba2_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

std::vector<bool> ReadAttending(const ConfigObject& config, std::int64_t layers) {
  std::vector<bool> attends(static_cast<std::size_t>(layers), false);
  const std::vector<std::string> types = ReadLayerTypes(config, layers);
  if (types.empty()) {
    if (!config.Has("attn_layer_indices")) {
      config.Fail(ConfigFault::kMissingField, "layer_types",
                  "missing; expected a list of mamba and attention");
      return attends;
    }
    for (const std::int64_t i : config.IntList("attn_layer_indices", {0, layers - 1}))
      attends[static_cast<std::size_t>(i)] = true;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    attends[i] = types[i] == "attention";
    if (!attends[i] && types[i] != "mamba") {
      config.FailValue(ConfigFault::kUnsupported, absl::StrFormat("layer_types[%d]", i), types[i],
                       "known: mamba, attention");
    }
  }
  return attends;
}

MlpShape ReadMlp(const ConfigObject& config) {
  const ExpertFields fields{.experts = "num_local_experts",
                            .shared = "",
                            .intermediate = "intermediate_size",
                            .shared_intermediate = "shared_intermediate_size"};
  if (HasExperts(config, fields)) return ReadExperts(config, fields);
  return ReadDense(config, config.FirstOf({"shared_intermediate_size", "intermediate_size"}));
}

}  // namespace

void ReadGraniteHybrid(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.context = 131072}, model);
  model.rope = ReadRope(config);
  const AttentionShape attention = ReadAttention(config, model.hidden);
  const MlpShape mlp = ReadMlp(config);
  const std::vector<bool> attends = ReadAttending(config, ReadLayerCount(config));
  const bool hybrid = std::find(attends.begin(), attends.end(), false) != attends.end();
  const std::int64_t expand = config.IntOr("mamba_expand", {1, 1024}, 2);
  const Mamba2Shape mamba = hybrid ? ReadMamba2(config, {}, expand * model.hidden) : Mamba2Shape{};
  for (const bool is_attention : attends) {
    AddLayer(is_attention ? MixerShape(attention) : MixerShape(mamba), mlp, model.layers);
  }
}

}  // namespace kvasir
