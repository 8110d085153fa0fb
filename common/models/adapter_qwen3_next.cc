// Qwen3-Next, Qwen3.5 and Qwen3.6: gated delta nets, with gated full attention in every fourth layer. Qwen3.5
// wraps the fields in `text_config`, names the state's dtype and brings layers of multi-token prediction.
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

// Which layers are full attention: layer_types, else every full_attention_interval-th.
std::vector<bool> ReadFullLayers(const ConfigObject& config, std::int64_t layers) {
  std::vector<bool> full(static_cast<std::size_t>(layers), false);
  const std::vector<std::string> types = ReadLayerTypes(config, layers);
  const std::int64_t interval = config.IntOr("full_attention_interval", {1, kLayersMax}, 4);
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (types.empty()) {
      full[i] = (static_cast<std::int64_t>(i) + 1) % interval == 0;
      continue;
    }
    full[i] = types[i] == "full_attention";
    if (!full[i] && types[i] != "linear_attention") {
      config.FailValue(ConfigFault::kUnsupported, absl::StrFormat("layer_types[%d]", i), types[i],
                       "known: full_attention, linear_attention");
    }
  }
  return full;
}

LayerMlps ReadLayerMlps(const ConfigObject& config, std::int64_t layers) {
  const ExpertFields fields{
      .experts = "num_experts", .shared = "", .shared_intermediate = "shared_expert_intermediate_size"};
  const std::int64_t step = config.IntOr("decoder_sparse_step", {1, kLayersMax}, 1);
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  for (std::int64_t i = 0; i < layers && HasExperts(config, fields); ++i)
    sparse[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
  if (config.Has("mlp_only_layers")) {
    for (const std::int64_t i : config.IntList("mlp_only_layers", {0, layers - 1}))
      sparse[static_cast<std::size_t>(i)] = false;
  }
  return ReadMlpsOf(config, fields, std::move(sparse), "intermediate_size");
}

}  // namespace

void ReadQwen3Next(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  attention.output_gate = config.BoolOr("attn_output_gate", true);
  GatedDeltaShape delta;
  delta.key_heads = config.Int("linear_num_key_heads", kHeadsRange);
  delta.value_heads = config.Int("linear_num_value_heads", kHeadsRange);
  delta.key_dim = config.Int("linear_key_head_dim", kDimRange);
  delta.value_dim = config.Int("linear_value_head_dim", kDimRange);
  delta.conv_kernel = config.Int("linear_conv_kernel_dim", kKernelRange);
  delta.state_dtype = ReadStateDType(config, "mamba_ssm_dtype", std::nullopt);
  const std::int64_t layers = ReadLayerCount(config);
  const std::vector<bool> full = ReadFullLayers(config, layers);
  const LayerMlps mlps = ReadLayerMlps(config, layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_full = full[static_cast<std::size_t>(i)];
    AddLayer(is_full ? MixerShape(attention) : MixerShape(delta), mlps.At(i), model.layers);
  }
  ModelLayer predicting = model.layers.back();
  predicting.mixer = attention;
  AddMtpLayers(config, "mtp_num_hidden_layers", predicting, model);
}

}  // namespace kvasir
