#include "common/models/config_fields.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

// The Qwen classes' default of max_window_layers.
constexpr std::int64_t kWindowLayersDefault = 28;

// Which layers are windowed, by layer_types.
std::vector<std::int64_t> WindowsByType(const ConfigObject& config, const std::vector<std::string>& types) {
  std::vector<std::int64_t> windows(types.size(), 0);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == "sliding_attention") {
      windows[i] = config.Int("sliding_window", kTokensRange);
    } else if (types[i] != "full_attention") {
      config.FailValue(ConfigFault::kUnsupported, absl::StrFormat("layer_types[%d]", i), types[i],
                       "known: full_attention, sliding_attention");
    }
  }
  return windows;
}

std::int64_t ReadHeadDim(const ConfigObject& config, std::int64_t hidden, std::int64_t heads) {
  const std::string_view field = config.FirstOf({"head_dim", "hidden_size_per_head"});
  if (config.Has(field)) return config.Int(field, kDimRange);
  if (hidden % heads != 0) {
    config.Fail(ConfigFault::kContradiction, "num_attention_heads",
                absl::StrFormat("hidden_size = %d is no multiple of it, and head_dim is missing", hidden));
  }
  return hidden / heads;
}

}  // namespace

void ReadModelFields(const ConfigObject& config, const ModelDefaults& defaults, ModelDescription& model) {
  const auto read = [&config](std::string_view field, IntRange range, std::int64_t fallback) {
    return fallback == 0 ? config.Int(field, range) : config.IntOr(field, range, fallback);
  };
  model.hidden = config.Int("hidden_size", kDimRange);
  model.vocab = read("vocab_size", kDimRange, defaults.vocab);
  const std::string_view context =
      config.FirstOf({"max_position_embeddings", "model_max_length", "max_sequence_length"});
  model.context = read(context, kTokensRange, defaults.context);
  model.rms_eps = config.RealOr(defaults.eps_field, {1e-30, 1.0}, model.rms_eps);
  model.tied_embedding = defaults.tied;
}

AttentionShape ReadAttention(const ConfigObject& config, std::int64_t hidden, const HeadDefaults& defaults) {
  const bool has_defaults = defaults.heads > 0;
  AttentionShape attention;
  attention.heads = has_defaults ? config.IntOr("num_attention_heads", kHeadsRange, defaults.heads)
                                 : config.Int("num_attention_heads", kHeadsRange);
  const std::string_view kv = config.FirstOf(
      {"num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups"});
  attention.kv_heads = config.IntOr(kv, kHeadsRange, has_defaults ? defaults.kv_heads : attention.heads);
  attention.head_dim = has_defaults ? config.IntOr("head_dim", kDimRange, defaults.head_dim)
                                    : ReadHeadDim(config, hidden, attention.heads);
  attention.value_dim = attention.head_dim;
  if (attention.heads % attention.kv_heads != 0) {
    config.Fail(ConfigFault::kContradiction, kv,
                absl::StrFormat("it must divide num_attention_heads = %d", attention.heads));
  }
  return attention;
}

MlaShape ReadMla(const ConfigObject& config) {
  MlaShape mla;
  mla.heads = config.Int("num_attention_heads", kHeadsRange);
  mla.q_lora_rank = config.IntOr("q_lora_rank", kDimOrNoneRange, 0);
  mla.kv_lora_rank = config.Int("kv_lora_rank", kDimRange);
  mla.nope_dim = config.Int("qk_nope_head_dim", kDimRange);
  mla.rope_dim = config.Int("qk_rope_head_dim", kDimRange);
  mla.value_dim = config.Int("v_head_dim", kDimRange);
  return mla;
}

std::int64_t ReadLayerCount(const ConfigObject& config) {
  return config.Int("num_hidden_layers", kLayersRange);
}

std::vector<std::string> ReadLayerTypes(const ConfigObject& config, std::int64_t layers) {
  if (!config.Has("layer_types")) return {};
  std::vector<std::string> types = config.TextList("layer_types");
  if (types.size() < static_cast<std::size_t>(layers)) {
    config.Fail(ConfigFault::kContradiction, "layer_types",
                absl::StrFormat("expected num_hidden_layers = %d entries", layers));
  }
  types.resize(static_cast<std::size_t>(layers), "full_attention");
  return types;
}

std::vector<std::int64_t> ReadWindows(const ConfigObject& config, std::int64_t layers,
                                      WindowSwitch by_switch) {
  const std::vector<std::string> types = ReadLayerTypes(config, layers);
  if (!types.empty()) return WindowsByType(config, types);
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
  const bool switched = by_switch == WindowSwitch::kRequired || config.Has("use_sliding_window");
  const std::int64_t window = config.IntOr("sliding_window", {0, kContextTokensMax}, 0);
  if (window == 0 || (switched && !config.BoolOr("use_sliding_window", false))) return windows;
  const std::int64_t first =
      switched ? config.IntOr("max_window_layers", {0, kLayersMax}, kWindowLayersDefault) : 0;
  for (std::int64_t i = first; i < layers; ++i) windows[static_cast<std::size_t>(i)] = window;
  return windows;
}

std::vector<std::int64_t> ReadWindowsByPattern(const ConfigObject& config, std::int64_t layers,
                                               std::int64_t pattern) {
  const std::vector<std::string> types = ReadLayerTypes(config, layers);
  if (!types.empty()) return WindowsByType(config, types);
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
  for (std::int64_t i = 0; i < layers; ++i) {
    if ((i + 1) % pattern != 0)
      windows[static_cast<std::size_t>(i)] = config.Int("sliding_window", kTokensRange);
  }
  return windows;
}

std::optional<DType> ReadStateDType(const ConfigObject& config, std::string_view field,
                                    std::optional<DType> fallback) {
  constexpr std::array kNames = {std::pair{std::string_view("float32"), DType::kF32},
                                 std::pair{std::string_view("bfloat16"), DType::kBf16},
                                 std::pair{std::string_view("float16"), DType::kF16}};
  if (!config.Has(field)) return fallback;
  const std::string name = config.Text(field);
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  if (name != "auto") {
    config.Fail(ConfigFault::kOutOfLimit, field, "expected float32, bfloat16, float16 or auto");
  }
  return std::nullopt;
}

void AddLayer(const MixerShape& mixer, const MlpShape& mlp, std::vector<ModelLayer>& layers) {
  layers.push_back({.index = static_cast<std::int32_t>(layers.size()), .mixer = mixer, .mlp = mlp});
}

void AddMtpLayers(const ConfigObject& config, std::string_view field, const ModelLayer& layer,
                  ModelDescription& model) {
  model.mtp_depth = config.IntOr(field, {0, kDraftTokensMax}, 0);
  for (std::int64_t i = 0; i < model.mtp_depth; ++i) {
    ModelLayer next = layer;
    next.index = static_cast<std::int32_t>(i);
    model.mtp_layers.push_back(std::move(next));
  }
}

}  // namespace kvasir
