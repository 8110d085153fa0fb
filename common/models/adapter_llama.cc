// Llama, Mistral, Qwen2 and Qwen3: grouped-query attention with a dense MLP, full or with a sliding window.
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"

namespace kvasir {
namespace {

constexpr IntRange kWindowRange{0, kContextTokensMax};

// The window of each layer, 0 = full. `layer_types` rules where it stands; without it a window holds for all
// layers, and in the Qwen family only where use_sliding_window is true, from layer max_window_layers on.
std::vector<std::int64_t> ReadWindows(const ConfigObject& config, std::int64_t layers) {
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
  if (config.Has("layer_types")) {
    const std::vector<std::string> types = config.TextList("layer_types");
    if (types.size() != windows.size()) {
      config.Fail(ConfigFault::kContradiction, "layer_types",
                  absl::StrFormat("expected num_hidden_layers = %d entries", layers));
      return windows;
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] == "sliding_attention") {
        windows[i] = config.Int("sliding_window", {1, kContextTokensMax});
      } else if (types[i] != "full_attention") {
        config.FailValue(ConfigFault::kUnsupported, absl::StrFormat("layer_types[%d]", i), types[i],
                         "known: full_attention, sliding_attention");
      }
    }
    return windows;
  }
  const bool by_switch = config.Has("use_sliding_window");
  const std::int64_t window = config.IntOr("sliding_window", kWindowRange, 0);
  if (window == 0 || (by_switch && !config.BoolOr("use_sliding_window", false))) return windows;
  const std::int64_t first = by_switch ? config.Int("max_window_layers", {0, kLayersMax}) : 0;
  for (std::int64_t i = first; i < layers; ++i) windows[static_cast<std::size_t>(i)] = window;
  return windows;
}

std::int64_t ReadHeadDim(const ConfigObject& config, std::int64_t hidden, std::int64_t heads) {
  if (config.Has("head_dim")) return config.Int("head_dim", kDimRange);
  if (hidden % heads != 0) {
    config.Fail(ConfigFault::kContradiction, "num_attention_heads",
                absl::StrFormat("hidden_size = %d is no multiple of it, and head_dim is missing", hidden));
  }
  return hidden / heads;
}

}  // namespace

void ReadLlama(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, "rms_norm_eps", model);
  model.rope = ReadRope(config);
  AttentionShape attention;
  attention.heads = config.Int("num_attention_heads", kHeadsRange);
  attention.kv_heads = config.IntOr("num_key_value_heads", kHeadsRange, attention.heads);
  attention.head_dim = ReadHeadDim(config, model.hidden, attention.heads);
  attention.value_dim = attention.head_dim;
  if (attention.heads % attention.kv_heads != 0) {
    config.Fail(ConfigFault::kContradiction, "num_key_value_heads",
                absl::StrFormat("it must divide num_attention_heads = %d", attention.heads));
  }
  MlpShape mlp;
  mlp.intermediate = config.Int("intermediate_size", kDimRange);
  const std::int64_t layers = config.Int("num_hidden_layers", kLayersRange);
  const std::vector<std::int64_t> windows = ReadWindows(config, layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    attention.window = windows[static_cast<std::size_t>(i)];
    model.layers.push_back({static_cast<std::int32_t>(i), attention, mlp});
  }
}

}  // namespace kvasir
