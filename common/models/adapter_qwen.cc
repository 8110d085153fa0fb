// Qwen2, Qwen2.5, Qwen3 and their mixtures of experts; the VL models wrap the same fields. A window counts
// only where use_sliding_window says so, whatever number is written.
#include <cstddef>
#include <utility>
#include <vector>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

// Experts in every decoder_sparse_step-th layer, except those that mlp_only_layers names.
LayerMlps ReadQwenMlps(const ConfigObject& config, std::int64_t layers) {
  std::vector<bool> sparse(static_cast<std::size_t>(layers), true);
  const std::int64_t step = config.IntOr("decoder_sparse_step", {1, kLayersMax}, 1);
  for (std::int64_t i = 0; i < layers; ++i) sparse[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
  if (config.Has("mlp_only_layers")) {
    for (const std::int64_t i : config.IntList("mlp_only_layers", {0, layers - 1}))
      sparse[static_cast<std::size_t>(i)] = false;
  }
  const ExpertFields fields{
      .experts = "num_experts", .shared = "", .shared_intermediate = "shared_expert_intermediate_size"};
  return ReadMlpsOf(config, fields, std::move(sparse), "intermediate_size");
}

void ReadLayers(const ConfigObject& config, const LayerMlps& mlps, ModelDescription& model) {
  AttentionShape attention = ReadAttention(config, model.hidden);
  const auto layers = static_cast<std::int64_t>(mlps.sparse.size());
  const std::vector<std::int64_t> windows = ReadWindows(config, layers, WindowSwitch::kRequired);
  for (std::int64_t i = 0; i < layers; ++i) {
    attention.window = windows[static_cast<std::size_t>(i)];
    AddLayer(attention, mlps.At(i), model.layers);
  }
}

}  // namespace

void ReadQwen(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  const std::vector<bool> dense(static_cast<std::size_t>(ReadLayerCount(config)), false);
  ReadLayers(config, ReadMlpsOf(config, {}, dense, "intermediate_size"), model);
}

void ReadQwenMoe(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  ReadLayers(config, ReadQwenMlps(config, ReadLayerCount(config)), model);
}

}  // namespace kvasir
