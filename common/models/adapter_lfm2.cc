// LFM2: gated short convolutions with a few attention layers.
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

std::vector<bool> ReadAttending(const ConfigObject& config, std::int64_t layers) {
  std::vector<bool> attends(static_cast<std::size_t>(layers), false);
  const std::vector<std::string> types = ReadLayerTypes(config, layers);
  if (types.empty()) {
    for (const std::int64_t i : config.IntList("full_attn_idxs", {0, layers - 1}))
      attends[static_cast<std::size_t>(i)] = true;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    attends[i] = types[i] == "full_attention";
    if (!attends[i] && types[i] != "conv") {
      config.FailValue(ConfigFault::kUnsupported, absl::StrFormat("layer_types[%d]", i), types[i],
                       "known: full_attention, conv");
    }
  }
  return attends;
}

// With block_auto_adjust_ff_dim the width is two thirds of what stands there, times a factor, rounded up.
std::int64_t ReadWidth(const ConfigObject& config) {
  const std::int64_t given = config.Int(config.FirstOf({"block_ff_dim", "intermediate_size"}), kDimRange);
  if (!config.BoolOr("block_auto_adjust_ff_dim", false)) return given;
  const double factor = config.RealOr("block_ffn_dim_multiplier", {0.0, 64.0}, 1.0);
  const std::int64_t multiple = config.IntOr("block_multiple_of", kDimRange, 256);
  const std::int64_t two_thirds = 2 * given / 3;
  const auto width = static_cast<std::int64_t>(factor * static_cast<double>(two_thirds));
  return (width + multiple - 1) / multiple * multiple;
}

}  // namespace

void ReadLfm2(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.eps_field = "norm_eps", .vocab = 65536, .context = 128000, .tied = true}, model);
  model.rope = ReadRope(config);
  const AttentionShape attention = ReadAttention(config, model.hidden);
  const ShortConvShape conv{.width = config.IntOr("conv_dim", kDimRange, model.hidden),
                            .conv_kernel = config.IntOr("conv_L_cache", kKernelRange, 3)};
  const std::int64_t layers = ReadLayerCount(config);
  const std::vector<bool> attends = ReadAttending(config, layers);
  const ExpertFields fields{.experts = "num_experts", .shared = ""};
  const bool experts = HasExperts(config, fields);
  const MlpShape sparse = experts ? ReadExperts(config, fields) : MlpShape{};
  const std::int64_t dense_layers = experts ? config.IntOr("num_dense_layers", {0, kLayersMax}, 2) : layers;
  const MlpShape dense{.intermediate = ReadWidth(config)};
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_attention = attends[static_cast<std::size_t>(i)];
    AddLayer(is_attention ? MixerShape(attention) : MixerShape(conv), i < dense_layers ? dense : sparse,
             model.layers);
  }
}

}  // namespace kvasir
