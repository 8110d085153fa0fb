// Jamba: Mamba-1, with attention in every attn_layer_period-th layer and experts in every
// expert_layer_period-th. Attention has no rotary embedding.
#include <cstddef>
#include <utility>
#include <vector>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

// Layers i with i % period == offset.
struct Every {
  std::int64_t period;
  std::int64_t offset;

  Every(const ConfigObject& config, std::string_view period_field, std::string_view offset_field,
        std::int64_t period_default, std::int64_t offset_default)
      : period(config.IntOr(period_field, kLayersRange, period_default)),
        offset(config.IntOr(offset_field, {0, kLayersMax}, offset_default)) {}
  [[nodiscard]] bool Holds(std::int64_t layer) const { return layer % period == offset; }
};

}  // namespace

void ReadJamba(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.vocab = 65536, .context = 262144}, model);
  const AttentionShape attention = ReadAttention(config, model.hidden);
  Mamba1Shape mamba;
  mamba.inner = config.IntOr("mamba_expand", {1, 1024}, 2) * model.hidden;
  mamba.state_dim = config.IntOr("mamba_d_state", kDimRange, 16);
  mamba.conv_kernel = config.IntOr("mamba_d_conv", kKernelRange, 4);
  const bool automatic = !config.Has("mamba_dt_rank") || config.IsText("mamba_dt_rank");
  mamba.step_rank = automatic ? (model.hidden + 15) / 16 : config.Int("mamba_dt_rank", kDimRange);
  const std::int64_t layers = ReadLayerCount(config);
  const Every attends(config, "attn_layer_period", "attn_layer_offset", 8, 4);
  const Every mixes(config, "expert_layer_period", "expert_layer_offset", 2, 1);
  const ExpertFields fields{.experts = "num_experts", .shared = "", .intermediate = "intermediate_size"};
  const bool experts = config.IntOr("num_experts", kDimOrNoneRange, 1) > 1;
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  for (std::int64_t i = 0; i < layers; ++i) sparse[static_cast<std::size_t>(i)] = experts && mixes.Holds(i);
  const LayerMlps mlps = ReadMlpsOf(config, fields, std::move(sparse), "intermediate_size");
  for (std::int64_t i = 0; i < layers; ++i) {
    AddLayer(attends.Holds(i) ? MixerShape(attention) : MixerShape(mamba), mlps.At(i), model.layers);
  }
}

}  // namespace kvasir
