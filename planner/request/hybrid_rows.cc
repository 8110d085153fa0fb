#include "planner/request/hybrid_rows.h"

#include <cstdint>
#include <variant>
#include <vector>

namespace kvasir {
namespace {

using vllm::EngineSpec;

// The first layer of the whole context, else the first with a window.
const MixerShape* AlignedAttention(const ModelDescription& model) {
  const MixerShape* windowed = nullptr;
  for (const ModelLayer& layer : model.layers) {
    std::vector<const MixerShape*> mixers = {&layer.mixer};
    for (const MixerShape& extra : layer.extra) mixers.push_back(&extra);
    for (const MixerShape* mixer : mixers) {
      const auto* attention = std::get_if<AttentionShape>(mixer);
      const auto* latent = std::get_if<MlaShape>(mixer);
      if (attention == nullptr && latent == nullptr) continue;
      if (attention != nullptr && attention->shares_with.has_value()) continue;
      const std::int64_t window =
          attention != nullptr ? attention->window + attention->chunk : latent->window;
      if (window == 0) return mixer;
      if (windowed == nullptr) windowed = mixer;
    }
  }
  return windowed;
}

}  // namespace

std::optional<EngineSpec> StateSpecOf(const ModelDescription& model, const LayerSetting& setting) {
  for (const ModelLayer& layer : model.layers) {
    std::vector<const MixerShape*> mixers = {&layer.mixer};
    for (const MixerShape& extra : layer.extra) mixers.push_back(&extra);
    for (const MixerShape* mixer : mixers) {
      std::optional<EngineSpec> spec = LayerSpecOf(*mixer, setting);
      if (spec.has_value() && spec->kind == vllm::SpecKind::kMamba) return spec;
    }
  }
  return std::nullopt;
}

std::optional<EngineSpec> AlignedRowOf(const ModelDescription& model, const LayerSetting& setting) {
  const MixerShape* const attention = AlignedAttention(model);
  if (attention == nullptr) return std::nullopt;
  LayerSetting one = setting;
  one.block = 1;
  one.window_block = 1;
  std::optional<EngineSpec> row = LayerSpecOf(*attention, one);
  // The engine aligns by the plain row of a latent cache.
  if (row.has_value() && vllm::IsMlaKind(row->kind)) row->state_content_bytes.reset();
  return row;
}

}  // namespace kvasir
