// Gemma-3n: sliding and full layers as layer_types says (else every fifth is full); the last layers share
// caches.
#include <cstddef>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/shared_caches.h"

namespace kvasir {
namespace {

// A number for all layers, or one for each.
std::vector<std::int64_t> ReadWidths(const ConfigObject& config, std::int64_t layers) {
  if (!config.IsList("intermediate_size"))
    return std::vector(static_cast<std::size_t>(layers), config.Int("intermediate_size", kDimRange));
  std::vector<std::int64_t> widths = config.IntList("intermediate_size", kDimRange);
  if (widths.size() != static_cast<std::size_t>(layers)) {
    config.Fail(ConfigFault::kContradiction, "intermediate_size",
                absl::StrFormat("expected num_hidden_layers = %d entries", layers));
    widths.resize(static_cast<std::size_t>(layers), 1);
  }
  return widths;
}

}  // namespace

void ReadGemma3n(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.vocab = 262400, .context = 32768, .tied = true}, model);
  model.rope = ReadRope(config);
  model.rope.local_theta = config.RealOr("rope_local_base_freq", {0.0, 1e12}, model.rope.local_theta);
  model.layer_embedding = config.IntOr("hidden_size_per_layer_input", kDimOrNoneRange, 256);
  AttentionShape attention =
      ReadAttention(config, model.hidden, {.heads = 8, .kv_heads = 2, .head_dim = 256});
  const std::int64_t layers = ReadLayerCount(config);
  const std::vector<std::int64_t> windows = ReadWindowsByPattern(config, layers, 5);
  const std::vector<std::int64_t> widths = ReadWidths(config, layers);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    attention.window = windows[i];
    AddLayer(attention, {.intermediate = widths[i]}, model.layers);
  }
  ShareLastCaches(config, model);
}

}  // namespace kvasir
