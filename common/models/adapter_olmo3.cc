// OLMo-3 and EXAONE-4: three layers with a window, then a full one, unless layer_types says otherwise.
#include <algorithm>
#include <string>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

// A number, or a word with a letter a layer whose length counts ("LLLG").
std::int64_t ReadPattern(const ConfigObject& config) {
  constexpr std::string_view kField = "sliding_window_pattern";
  if (!config.Has(kField) || config.IsText(kField)) {
    const std::string letters = config.TextOr(kField, "LLLG");
    if (letters.empty()) config.Fail(ConfigFault::kOutOfLimit, kField, "expected at least one letter");
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(letters.size()));
  }
  return config.Int(kField, {1, kLayersMax});
}

}  // namespace

void ReadOlmo3(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  const MlpShape mlp = ReadDense(config);
  const std::int64_t layers = ReadLayerCount(config);
  // The smaller EXAONE-4 has no window: all its layers are full.
  const std::int64_t pattern = config.Has("sliding_window") ? ReadPattern(config) : 1;
  for (const std::int64_t window : ReadWindowsByPattern(config, layers, pattern)) {
    attention.window = window;
    AddLayer(attention, mlp, model.layers);
  }
}

}  // namespace kvasir
