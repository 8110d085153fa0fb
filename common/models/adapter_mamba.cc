// Mamba, Falcon-Mamba (Mamba-1) and Mamba-2 models: recurrent layers only, no MLPs, no limit on the context.
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/mamba2_fields.h"

namespace kvasir {
namespace {

constexpr ModelDefaults kDefaults{
    .eps_field = "layer_norm_epsilon", .vocab = 50280, .context = kContextTokensMax};

}  // namespace

void ReadMamba(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, kDefaults, model);
  // Where the width stands it counts: Falcon-Mamba's `expand` does not give it.
  const std::int64_t expand = config.IntOr("expand", {1, 1024}, 2);
  Mamba1Shape mamba;
  mamba.inner = config.IntOr("intermediate_size", kDimRange, expand * model.hidden);
  mamba.state_dim = config.IntOr("state_size", kDimRange, 16);
  mamba.conv_kernel = config.IntOr("conv_kernel", kKernelRange, 4);
  const bool automatic = !config.Has("time_step_rank") || config.IsText("time_step_rank");
  mamba.step_rank = automatic ? (model.hidden + 15) / 16 : config.Int("time_step_rank", kDimRange);
  const std::int64_t layers = ReadLayerCount(config);
  for (std::int64_t i = 0; i < layers; ++i) AddLayer(mamba, {}, model.layers);
}

void ReadMamba2Model(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, kDefaults, model);
  const std::int64_t expand = config.IntOr("expand", {1, 1024}, 2);
  const Mamba2Fields fields{"num_heads", "head_dim", "state_size", "n_groups", "conv_kernel"};
  Mamba2Shape mamba = ReadMamba2(config, fields, expand * model.hidden);
  mamba.draft_rows = true;
  const std::int64_t layers = ReadLayerCount(config);
  for (std::int64_t i = 0; i < layers; ++i) AddLayer(mamba, {}, model.layers);
}

}  // namespace kvasir
