#include "planner/request/cache_layer.h"

#include "absl/strings/str_format.h"
#include "common/models/model_text.h"

namespace kvasir {
namespace {

struct CacheOf {
  DType dtype;
  const StateScale& scale;
  CacheLayer& layer;

  void operator()(const AttentionShape& s) const {
    layer.mixer = s.window > 0 ? "window" : "attention";
    layer.cache = KeyValueCache{s.heads, s.kv_heads, s.head_dim, s.value_dim, s.window};
  }

  void operator()(const MlaShape& s) const {
    layer.mixer = "mla";
    layer.cache = LatentCache{s.heads, s.kv_lora_rank, s.rope_dim, 0};
  }

  void operator()(const KdaShape& s) const {
    layer.mixer = "kda";
    const std::int64_t width = s.heads * s.head_dim;
    StateCache cache;
    cache.heads = s.heads;
    cache.states = {{"conv", (s.conv_kernel - 1 + scale.draft_tokens) * 3 * width, dtype},
                    {"recurrent", width * s.head_dim, DType::kF32}};
    cache.ring = {{"decay", width, DType::kF32}, {"key_update", 2 * width, dtype}};
    layer.cache = cache;
  }

  void operator()(const Mamba2Shape& s) const {
    layer.mixer = "mamba2";
    const std::int64_t groups = s.groups % scale.tp == 0 ? s.groups : scale.tp;
    const std::int64_t width = s.heads * s.head_dim;
    StateCache cache;
    cache.heads = s.heads;
    cache.states = {
        {"conv", (s.conv_kernel - 1 + scale.draft_tokens) * (width + 2 * groups * s.state_dim), dtype},
        {"recurrent", width * s.state_dim, s.state_dtype.value_or(dtype)}};
    cache.ring = {
        {"b", groups * s.state_dim, dtype}, {"input", width, dtype}, {"step", s.heads, DType::kF32}};
    layer.cache = cache;
  }

  template <typename Shape>
  void operator()(const Shape&) const {}
};

}  // namespace

ModelInput InputOf(const ModelDescription& model, Role role, const StateScale& scale) {
  ModelInput input;
  input.ref = {model.name, ModelDigest(model)};
  input.dtype = model.dtype;
  input.hidden = model.hidden;
  input.vocab = model.vocab;
  input.layers_total = static_cast<std::int64_t>(model.layers.size());
  input.context_tokens = model.context;
  for (const ModelLayer& shape : model.layers) {
    CacheLayer layer;
    layer.id = {role, shape.index, 0};
    layer.name = absl::StrFormat("%s.layers.%d", RoleName(role), shape.index);
    std::visit(CacheOf{model.dtype, scale, layer}, shape.mixer);
    input.layers.push_back(std::move(layer));
  }
  if (model.draft.has_value()) {
    DraftFacts draft;
    draft.ref = input.ref;
    draft.target_hidden = model.draft->target_hidden;
    draft.target_layers = model.draft->target_layers;
    draft.vocab = model.vocab;
    draft.target_taps = model.draft->target_taps;
    input.draft = draft;
    input.draft_causal = model.draft->causal;
  }
  return input;
}

}  // namespace kvasir
