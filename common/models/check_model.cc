#include "common/models/check_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/models/model_limits.h"

namespace kvasir {
namespace {

// What a shape's fields owe each other, once each is within its limits.
struct ShapeChecker {
  FaultKeeper& check;
  const std::string& where;  // "layer 3 "

  void operator()(const AttentionShape& s) const {
    KeyValueHeads(s.heads, s.kv_heads);
    check.Require(s.window == 0 || s.chunk == 0, where + "chunk", s.chunk,
                  absl::StrFormat("a layer has a window or chunks; window is %d", s.window));
  }
  void operator()(const MlaShape& s) const {
    check.Require(!s.rotate || s.rope_dim % 2 == 0, where + "rope_dim", s.rope_dim,
                  "a rotary embedding turns pairs of lanes: expected an even number");
    check.Require((s.o_lora_rank == 0) == (s.o_groups == 0), where + "o_groups", s.o_groups,
                  absl::StrFormat("it goes with o_lora_rank = %d: both, or neither", s.o_lora_rank));
  }
  void operator()(const CrossAttentionShape& s) const { KeyValueHeads(s.heads, s.kv_heads); }
  void operator()(const EncoderAttentionShape& s) const { KeyValueHeads(s.heads, s.kv_heads); }

  // Each factor is within its limit, so that 2^12 * 2^20 * 2^20 still fits 64 bits.
  void operator()(const KdaShape& s) const {
    Elements(s.heads * s.head_dim * s.head_dim, "head_dim", "the recurrent state");
    Convolution(s.conv_kernel, 3 * s.heads * s.head_dim, "head_dim");
  }
  void operator()(const Mamba1Shape& s) const {
    StateDType(s.state_dtype);
    Elements(s.inner * s.state_dim, "inner", "the recurrent state");
    Convolution(s.conv_kernel, s.inner, "inner");
  }
  void operator()(const Mamba2Shape& s) const {
    StateDType(s.state_dtype);
    check.Require(s.heads % s.groups == 0, where + "groups", s.groups,
                  absl::StrFormat("it must divide heads = %d", s.heads));
    Elements(s.heads * s.head_dim * s.state_dim, "head_dim", "the recurrent state");
    Convolution(s.conv_kernel, s.heads * s.head_dim + 2 * s.groups * s.state_dim, "head_dim");
  }
  void operator()(const GatedDeltaShape& s) const {
    StateDType(s.state_dtype);
    check.Require(s.value_heads % s.key_heads == 0, where + "key_heads", s.key_heads,
                  absl::StrFormat("it must divide value_heads = %d", s.value_heads));
    Elements(s.value_heads * s.value_dim * s.key_dim, "value_dim", "the recurrent state");
    Convolution(s.conv_kernel, 2 * s.key_heads * s.key_dim + s.value_heads * s.value_dim, "value_dim");
  }
  void operator()(const LightningShape& s) const {
    Elements(s.heads * s.head_dim * s.head_dim, "head_dim", "the recurrent state");
  }
  void operator()(const ShortConvShape& s) const { Convolution(s.conv_kernel, s.width, "width"); }
  void operator()(const IndexerShape&) const {}
  void operator()(const CompressorShape&) const {}
  void operator()(const HiddenStateShape&) const {}
  void operator()(const NoMixer&) const {}

  void KeyValueHeads(std::int64_t heads, std::int64_t kv_heads) const {
    check.Require(heads % kv_heads == 0, where + "kv_heads", kv_heads,
                  absl::StrFormat("it must divide heads = %d", heads));
  }
  void StateDType(const std::optional<DType>& dtype) const {
    check.Require(dtype != DType::kFp8E4M3, where + "state_dtype", 0, "expected bf16, f16 or f32");
  }
  void Convolution(std::int64_t kernel, std::int64_t width, std::string_view field) const {
    Elements((kernel - 1) * width, field, "the convolution's state");
  }
  void Elements(std::int64_t elements, std::string_view field, std::string_view what) const {
    if (elements <= kStateElementsMax) return;
    check.Report(ConfigFault::kOutOfLimit, where + std::string(field), "",
                 absl::StrFormat("%s has %d elements; at most %d", what, elements, kStateElementsMax));
  }
};

void CheckShape(FaultKeeper& check, const std::string& where, const MixerShape& mixer) {
  std::visit([&](const auto& shape) { CheckLimits(check, where, shape); }, mixer);
  if (check.ok()) std::visit(ShapeChecker{check, where}, mixer);
}

// Kinds that only stand beside another mixer, and kinds that only stand alone.
bool OnlyExtra(const MixerShape& mixer) {
  return std::holds_alternative<IndexerShape>(mixer) || std::holds_alternative<CompressorShape>(mixer) ||
         std::holds_alternative<HiddenStateShape>(mixer);
}
bool OnlyMixer(const MixerShape& mixer) {
  return std::holds_alternative<NoMixer>(mixer) || std::holds_alternative<EncoderAttentionShape>(mixer);
}

// `shares_with` names an earlier attention layer that owns rows of the same form.
void CheckSharing(FaultKeeper& check, const std::string& where, const AttentionShape& layer,
                  const std::vector<ModelLayer>& layers, std::int64_t index) {
  if (!layer.shares_with.has_value()) return;
  const std::int64_t owner = *layer.shares_with;
  const AttentionShape* owned =
      owner >= 0 && owner < index
          ? std::get_if<AttentionShape>(&layers[static_cast<std::size_t>(owner)].mixer)
          : nullptr;
  const bool fits = owned != nullptr && !owned->shares_with.has_value() &&
                    owned->kv_heads == layer.kv_heads && owned->head_dim == layer.head_dim &&
                    owned->value_dim == layer.value_dim && owned->window == layer.window &&
                    owned->chunk == layer.chunk;
  check.Require(fits, where + "shares_with", owner,
                "expected an earlier attention layer with a cache of its own and rows of the same form");
}

// Whether the fields that say how experts are chosen are as a layer without experts has them.
bool RoutesNothing(const MlpShape& mlp) {
  const MlpShape none;
  return mlp.scoring == none.scoring && mlp.correction_bias == none.correction_bias &&
         mlp.groups == none.groups && mlp.groups_kept == none.groups_kept &&
         mlp.normalise == none.normalise && mlp.routed_scale == none.routed_scale;
}

void CheckRouting(FaultKeeper& check, const std::string& where, const MlpShape& mlp) {
  check.Require(mlp.scoring != ExpertScoring::kUnstated || RoutesNothing(mlp), where + "scoring", 0,
                "fields say how experts are chosen, so the scoring must be stated");
  check.Require(mlp.experts % mlp.groups == 0, where + "groups", mlp.groups,
                absl::StrFormat("it must divide experts = %d", mlp.experts));
  check.Require(mlp.groups_kept <= mlp.groups, where + "groups_kept", mlp.groups_kept,
                absl::StrFormat("expected 1 .. groups = %d", mlp.groups));
  const std::int64_t size = mlp.experts / mlp.groups;
  check.Require(mlp.groups == 1 || !mlp.correction_bias || size >= 2, where + "groups", mlp.groups,
                absl::StrFormat("a group counts as the sum of its two best experts, and groups of %d "
                                "experts have %d",
                                mlp.experts, size));
  check.Require(mlp.experts_per_token <= size * mlp.groups_kept, where + "experts_per_token",
                mlp.experts_per_token,
                absl::StrFormat("%d groups of %d experts are kept to choose from", mlp.groups_kept, size));
}

void CheckMlp(FaultKeeper& check, const std::string& where, const MlpShape& mlp) {
  CheckLimits(check, where, mlp);
  if (mlp.experts == 0) {
    check.Require(mlp.experts_per_token == 0 && mlp.shared_experts == 0 && mlp.expert_intermediate == 0 &&
                      mlp.shared_intermediate == 0 && mlp.latent == 0 && !mlp.latent_norm &&
                      RoutesNothing(mlp),
                  where + "experts", mlp.experts,
                  "the layer has no experts, so the other expert fields must be 0 or left out");
    return;
  }
  if (check.ok()) CheckRouting(check, where, mlp);
  check.Require(mlp.experts_per_token >= 1 && mlp.experts_per_token <= mlp.experts,
                where + "experts_per_token", mlp.experts_per_token,
                absl::StrFormat("expected 1 .. experts = %d", mlp.experts));
  check.Require(mlp.expert_intermediate >= 1, where + "expert_intermediate", mlp.expert_intermediate,
                "experts need a width of at least 1");
  check.Require(mlp.shared_intermediate == 0 || mlp.shared_experts > 0, where + "shared_intermediate",
                mlp.shared_intermediate, "the layer has no shared experts: expected 0");
}

void CheckLayers(FaultKeeper& check, std::string_view word, const std::vector<ModelLayer>& layers) {
  std::int64_t expected = 0;
  for (const ModelLayer& layer : layers) {
    const std::string where = absl::StrFormat("%s %d ", word, layer.index);
    check.Require(layer.index == expected, where + "index", layer.index,
                  absl::StrFormat("layers are numbered from 0 without gaps: expected %d", expected));
    check.Require(!OnlyExtra(layer.mixer), where + std::string(MixerKind(layer.mixer)), 0,
                  "this kind of cache stands beside a mixer, not in its place");
    CheckShape(check, where, layer.mixer);
    if (const auto* attention = std::get_if<AttentionShape>(&layer.mixer); attention && check.ok()) {
      CheckSharing(check, where, *attention, layers, expected);
    }
    check.Range(where + "extra", static_cast<std::int64_t>(layer.extra.size()), 0, kExtraCachesMax);
    for (const MixerShape& extra : layer.extra) {
      const std::string kind(MixerKind(extra));
      check.Require(!OnlyMixer(extra), where + kind, 0,
                    "this kind keeps nothing: it cannot be a further cache");
      CheckShape(check, where + kind + " ", extra);
    }
    CheckMlp(check, where, layer.mlp);
    ++expected;
  }
}

bool EngineTaps(DraftMethod method) {
  return method == DraftMethod::kEagle || method == DraftMethod::kEagle3 || method == DraftMethod::kMtp ||
         method == DraftMethod::kPeagle;
}

bool NeedsOriginalContext(const Rope& rope) {
  return (rope.kind == RopeKind::kYarn && rope.factor > 1.0) || rope.kind == RopeKind::kLlama3;
}

void CheckDraft(FaultKeeper& check, const ModelDescription& model, const DraftShape& draft) {
  CheckLimits(check, "draft ", draft);
  check.Require(draft.mask_token < model.vocab, "draft mask_token", draft.mask_token,
                absl::StrFormat("expected a token below vocab = %d", model.vocab));
  check.Range("draft taps", static_cast<std::int64_t>(draft.target_taps.size()),
              EngineTaps(draft.method) ? 0 : 1, kLayersMax);
  if (draft.method == DraftMethod::kMtp) {
    check.Require(draft.target_taps.empty(), "draft taps",
                  static_cast<std::int64_t>(draft.target_taps.size()),
                  "MTP modules read the target's last state, and tap no layer");
    check.Require(draft.markov_rank == 0 && !draft.confidence_head, "draft markov_rank", draft.markov_rank,
                  "MTP modules have no Markov or confidence head");
    check.Require(draft.causal, "draft causal", 0, "MTP modules draft one token after the other");
  }
  check.Range("draft target_layers", draft.target_layers, 0, kLayersMax);
  std::int64_t previous = -1;
  for (const std::int64_t tap : draft.target_taps) {
    check.Require(tap > previous, "draft taps", tap, "target layers must be 0 or more, and ascending");
    check.Require(draft.target_layers == 0 || tap < draft.target_layers, "draft taps", tap,
                  absl::StrFormat("the target has %d layers, numbered from 0", draft.target_layers));
    previous = tap;
  }
}

void CheckQuantisation(FaultKeeper& check, const WeightQuantisation& quantisation) {
  if (quantisation == WeightQuantisation{}) return;
  CheckLimits(check, "quantisation ", quantisation);
}

}  // namespace

bool IsModelName(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._/+:@-").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= static_cast<std::size_t>(kNameBytesMax) &&
         std::all_of(name.begin(), name.end(), plain);
}

std::optional<ConfigError> FindModelFault(const ModelDescription& model) {
  FaultKeeper check;
  if (!IsModelName(model.name)) {
    check.Report(ConfigFault::kOutOfLimit, "name", model.name, std::string(kModelNameFix));
  }
  if (!IsModelName(model.architecture)) {
    check.Report(ConfigFault::kOutOfLimit, "architecture", model.architecture, std::string(kModelNameFix));
  }
  check.Range("hidden", model.hidden, 1, kDimMax);
  check.Range("vocab", model.vocab, 1, kDimMax);
  check.Range("context", model.context, 1, kContextTokensMax);
  check.Require(model.dtype != DType::kFp8E4M3, "dtype", 0, "weights are described as bf16, f16 or f32");
  check.Real("rms_eps", model.rms_eps, 1e-30, 1.0);
  check.Range("layer_embedding", model.layer_embedding, 0, kDimMax);
  check.Range("residual_block", model.residual_block, 0, kLayersMax);
  CheckLimits(check, "rope ", model.rope);
  check.Range("rope original_context", model.rope.original_context, NeedsOriginalContext(model.rope) ? 1 : 0,
              kContextTokensMax);
  check.Range("layers", static_cast<std::int64_t>(model.layers.size()), 1, kLayersMax);
  CheckLayers(check, "layer", model.layers);
  check.Range("mtp depth", model.mtp_depth, model.mtp_layers.empty() ? 0 : 1,
              model.mtp_layers.empty() ? 0 : kDraftTokensMax);
  check.Range("mtp layers", static_cast<std::int64_t>(model.mtp_layers.size()), 0, kLayersMax);
  CheckLayers(check, "mtp layer", model.mtp_layers);
  if (model.encoder.has_value()) CheckLimits(check, "encoder ", *model.encoder);
  CheckQuantisation(check, model.quantisation);
  if (model.draft.has_value()) CheckDraft(check, model, *model.draft);
  return check.Take();
}

}  // namespace kvasir
