#include "planner/request/cache_layer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/models/draft_of.h"
#include "common/models/model_text.h"

namespace kvasir {
namespace {

// One f32 scale for so many lanes of an fp8 key.
constexpr std::int64_t kLanesPerScale = 128;

using Cache = std::variant<KeyValueCache, LatentCache, StateCache>;

// What a shape keeps: nothing, a cache with the word for its groups, or something that cannot be planned.
struct Kept {
  std::optional<Cache> cache;
  std::string_view mixer;
  std::string_view unsupported;               // why
  std::optional<DType> dtype = std::nullopt;  // of rows that have their own
};

struct CacheOf {
  DType dtype;
  const StateScale& scale;

  Kept operator()(const AttentionShape& s) const {
    if (s.shares_with.has_value()) return {};
    if (s.sink_tokens > 0)
      return {{}, "", "rows in front of the context are kept beside those of the tokens"};
    const std::string_view word = s.chunk > 0 ? "chunked" : s.window > 0 ? "window" : "attention";
    return {KeyValueCache{s.heads, s.kv_heads, s.head_dim, s.value_dim, std::max(s.window, s.chunk)}, word,
            ""};
  }

  Kept operator()(const MlaShape& s) const {
    if (s.ratio > 1) return {{}, "", "one row stands for several tokens"};
    return {LatentCache{s.heads, s.kv_lora_rank, s.rope_dim, s.window}, s.window > 0 ? "mla_window" : "mla",
            ""};
  }

  Kept operator()(const IndexerShape& s) const {
    if (s.ratio > 1) return {{}, "", "one row stands for several tokens"};
    const std::int64_t scales = (s.head_dim + kLanesPerScale - 1) / kLanesPerScale;
    const std::int64_t elements = s.fp8_keys ? s.head_dim + scales * DTypeBytes(DType::kF32) : s.head_dim;
    return {LatentCache{0, elements, 0, 0}, "indexer", "", s.fp8_keys ? DType::kFp8E4M3 : dtype};
  }

  Kept operator()(const CompressorShape&) const { return {{}, "", "it belongs to a compressed cache"}; }
  Kept operator()(const CrossAttentionShape&) const {
    return {{}, "", "its rows are those of the encoder's input, not of the sequence"};
  }
  Kept operator()(const HiddenStateShape& s) const {
    return {LatentCache{0, s.taps * s.width, 0, 0}, "hidden_state", "", dtype};
  }
  Kept operator()(const EncoderAttentionShape&) const { return {}; }
  Kept operator()(const NoMixer&) const { return {}; }

  // Keys and values of drafted tokens are made again from the convolutions' inputs, which the state keeps.
  Kept operator()(const KdaShape& s) const {
    const std::int64_t width = s.heads * s.head_dim;
    return State(s.heads, "kda",
                 {{"conv", Rows(s.conv_kernel, true) * 3 * width, dtype},
                  {"recurrent", width * s.head_dim, DType::kF32}},
                 {{"decay", width, DType::kF32}, {"beta", s.heads, DType::kF32}});
  }

  Kept operator()(const GatedDeltaShape& s) const {
    const std::int64_t keys = s.key_heads * s.key_dim;
    const std::int64_t values = s.value_heads * s.value_dim;
    return State(s.key_heads, "gated_delta",
                 {{"conv", Rows(s.conv_kernel, true) * (2 * keys + values), dtype},
                  {"recurrent", values * s.key_dim, s.state_dtype.value_or(dtype)}},
                 {{"decay", s.value_heads, DType::kF32}, {"beta", s.value_heads, DType::kF32}});
  }

  Kept operator()(const Mamba2Shape& s) const {
    const std::int64_t groups = s.groups % scale.tp == 0 ? s.groups : scale.tp;
    const std::int64_t width = s.heads * s.head_dim;
    return State(
        s.heads, "mamba2",
        {{"conv", Rows(s.conv_kernel, s.draft_rows) * (width + 2 * groups * s.state_dim), dtype},
         {"recurrent", width * s.state_dim, s.state_dtype.value_or(dtype)}},
        {{"b", groups * s.state_dim, dtype}, {"input", width, dtype}, {"step", s.heads, DType::kF32}});
  }

  Kept operator()(const Mamba1Shape& s) const {
    return State(
        s.inner, "mamba1",
        {{"conv", Rows(s.conv_kernel, false) * s.inner, dtype},
         {"recurrent", s.inner * s.state_dim, s.state_dtype.value_or(dtype)}},
        {{"b", s.state_dim * scale.tp, dtype}, {"input", s.inner, dtype}, {"step", s.inner, DType::kF32}});
  }

  Kept operator()(const LightningShape& s) const {
    const std::int64_t width = s.heads * s.head_dim;
    return State(s.heads, "lightning", {{"recurrent", width * s.head_dim, dtype}},
                 {{"key_value", 2 * width, dtype}});
  }

  Kept operator()(const ShortConvShape& s) const {
    return State(s.width, "short_conv", {{"conv", Rows(s.conv_kernel, false) * s.width, dtype}},
                 {{"input", s.width, dtype}});
  }

  // Of a convolution's state.
  [[nodiscard]] std::int64_t Rows(std::int64_t kernel, bool draft_rows) const {
    return kernel - 1 + (draft_rows ? scale.draft_tokens : 0);
  }

  static Kept State(std::int64_t heads, std::string_view word, std::vector<StateTensor> states,
                    std::vector<StateTensor> ring) {
    return {StateCache{heads, std::move(states), std::move(ring)}, word, ""};
  }
};

// Collects the caches of a model's layers in their order.
class LayerList {
 public:
  LayerList(const ModelDescription& model, Role role, const StateScale& scale, ModelInput& input)
      : model_(model), role_(role), scale_(scale), input_(input) {}

  void Add(const ModelLayer& shape) {
    AddCache(shape.index, 0, shape.mixer);
    std::int32_t place = 0;
    for (const MixerShape& extra : shape.extra) AddCache(shape.index, ++place, extra);
  }

  // One refusal for each kind and reason, with all its layers.
  void Refuse() {
    for (auto& [why, names] : unsupported_) {
      input_.refusals.push_back(CacheKindUnsupported(std::move(names), why.first, why.second));
    }
  }

 private:
  void AddCache(std::int32_t index, std::int32_t place, const MixerShape& shape) {
    std::string name = absl::StrFormat("%s.layers.%d", RoleName(role_), index);
    if (place > 0) name += absl::StrFormat(".%d", place);
    const Kept kept = std::visit(CacheOf{model_.dtype, scale_}, shape);
    if (!kept.unsupported.empty()) {
      unsupported_[{std::string(MixerKind(shape)), std::string(kept.unsupported)}].push_back(std::move(name));
      return;
    }
    if (!kept.cache.has_value()) return;
    CacheLayer layer;
    layer.id = {role_, index, place};
    layer.name = std::move(name);
    layer.mixer = kept.mixer;
    layer.cache = *kept.cache;
    layer.dtype = kept.dtype;
    if (model_.draft.has_value()) layer.causal = CausalIn(*model_.draft, shape);
    input_.layers.push_back(std::move(layer));
  }

  static bool CausalIn(const DraftShape& draft, const MixerShape& shape) {
    const auto* attention = std::get_if<AttentionShape>(&shape);
    return attention != nullptr && attention->window > 0 ? draft.windowed_causal : draft.causal;
  }

  const ModelDescription& model_;
  Role role_;
  const StateScale& scale_;
  ModelInput& input_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> unsupported_;  // by kind and reason
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
  LayerList list(model, role, scale, input);
  for (const ModelLayer& shape : model.layers) list.Add(shape);
  list.Refuse();
  if (model.draft.has_value()) {
    DraftFacts draft;
    draft.ref = input.ref;
    draft.target_hidden = model.draft->target_hidden;
    draft.target_layers = model.draft->target_layers;
    draft.vocab = model.vocab;
    // A chain may go on for as long as it likes.
    if (!model.draft->IsChain()) {
      draft.draft_tokens_max = std::min(TrainedTokens(*model.draft), kDraftTokensMax);
    }
    draft.target_taps = model.draft->target_taps;
    input.draft = draft;
    input.draft_causal = model.draft->causal;
    input.draft_anchor_row = model.draft->AnchorPredictsNothing();
  }
  return input;
}

}  // namespace kvasir
