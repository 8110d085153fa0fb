// One listing of the fields of every shape of a model description, in the order of the canonical text. The
// writer, the reader and the check of limits each walk it, so that a field is named and bounded in one place.
//
// A walker has Int, Real, Bool, Text, Enum, Auto (an optional dtype), Format (of weights), Layers (a list),
// and for fields that stand in the text only where they differ from their default, which is the last
// argument, IntUnless, RealUnless, BoolUnless, EnumUnless; Layer is such a field without one.
#ifndef KVASIR_COMMON_MODELS_MODEL_FIELDS_H_
#define KVASIR_COMMON_MODELS_MODEL_FIELDS_H_

#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/base/limits.h"
#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir::model_fields {

// `Shape`, const or not.
template <typename T, typename Shape>
concept A = std::same_as<std::remove_const_t<T>, Shape>;

inline constexpr IntRange kDim{1, kDimMax};
inline constexpr IntRange kDimOrNone{0, kDimMax};
inline constexpr IntRange kHeads{1, kHeadsMax};
inline constexpr IntRange kTokens{1, kContextTokensMax};
inline constexpr IntRange kTokensOrNone{0, kContextTokensMax};
inline constexpr IntRange kKernel{2, kDimMax};
inline constexpr RealRange kFactor{1.0, 1e6};
inline constexpr RealRange kTheta{1.0, 1e12};
inline constexpr RealRange kExpertScale{1e-6, 1e6};
inline constexpr RealRange kSituBeta{0.0, 1e6};

inline constexpr std::array kDraftMethods = {
    std::pair{DraftMethod::kDspark, std::string_view("dspark")},
    std::pair{DraftMethod::kEagle, std::string_view("eagle")},
    std::pair{DraftMethod::kEagle3, std::string_view("eagle3")},
    std::pair{DraftMethod::kMtp, std::string_view("mtp")},
    std::pair{DraftMethod::kDflash, std::string_view("dflash")},
    std::pair{DraftMethod::kDflare, std::string_view("dflare")},
    std::pair{DraftMethod::kDomino, std::string_view("domino")},
    std::pair{DraftMethod::kPeagle, std::string_view("peagle")},
};
inline constexpr std::array kMarkovHeads = {
    std::pair{MarkovHead::kVanilla, std::string_view("vanilla")},
    std::pair{MarkovHead::kGated, std::string_view("gated")},
    std::pair{MarkovHead::kRnn, std::string_view("rnn")},
};
inline constexpr std::array kRopeKinds = {
    std::pair{RopeKind::kYarn, std::string_view("yarn")},
    std::pair{RopeKind::kLinear, std::string_view("linear")},
    std::pair{RopeKind::kDynamic, std::string_view("dynamic")},
    std::pair{RopeKind::kLlama3, std::string_view("llama3")},
    std::pair{RopeKind::kLongrope, std::string_view("longrope")},
    std::pair{RopeKind::kProportional, std::string_view("proportional")},
};

inline constexpr std::array kExpertScorings = {
    std::pair{ExpertScoring::kUnstated, std::string_view("unstated")},
    std::pair{ExpertScoring::kSoftmax, std::string_view("softmax")},
    std::pair{ExpertScoring::kSigmoid, std::string_view("sigmoid")},
};

void Walk(auto& w, A<AttentionShape> auto& s) {
  w.Int("heads", s.heads, kHeads);
  w.Int("kv_heads", s.kv_heads, kHeads);
  w.Int("head_dim", s.head_dim, kDim);
  w.Int("value_dim", s.value_dim, kDim);
  w.Int("window", s.window, kTokensOrNone);
  w.IntUnless("chunk", s.chunk, kTokensOrNone, 0);
  w.BoolUnless("sinks", s.sinks, false);
  w.IntUnless("sink_tokens", s.sink_tokens, kTokensOrNone, 0);
  w.BoolUnless("output_gate", s.output_gate, false);
  w.Layer("shares_with", s.shares_with);
}

void Walk(auto& w, A<MlaShape> auto& s) {
  w.Int("heads", s.heads, kHeads);
  w.Int("q_lora_rank", s.q_lora_rank, kDimOrNone);
  w.Int("kv_lora_rank", s.kv_lora_rank, kDim);
  w.Int("nope_dim", s.nope_dim, kDim);
  w.Int("rope_dim", s.rope_dim, kDim);
  w.Int("value_dim", s.value_dim, kDim);
  w.Bool("rotate", s.rotate);
  w.Bool("output_gate", s.output_gate);
  w.IntUnless("window", s.window, kTokensOrNone, 0);
  w.IntUnless("ratio", s.ratio, kTokens, 1);
  w.BoolUnless("sinks", s.sinks, false);
  w.IntUnless("o_lora_rank", s.o_lora_rank, kDimOrNone, 0);
  w.IntUnless("o_groups", s.o_groups, {0, kHeadsMax}, 0);
}

void Walk(auto& w, A<KdaShape> auto& s) {
  w.Int("heads", s.heads, kHeads);
  w.Int("head_dim", s.head_dim, kDim);
  w.Int("conv_kernel", s.conv_kernel, kKernel);
  w.BoolUnless("full_rank_gate", s.full_rank_gate, false);
  w.RealUnless("gate_lower_bound", s.gate_lower_bound, {-100.0, 0.0}, 0.0);
}

void Walk(auto& w, A<Mamba2Shape> auto& s) {
  w.Int("heads", s.heads, kHeads);
  w.Int("head_dim", s.head_dim, kDim);
  w.Int("state_dim", s.state_dim, kDim);
  w.Int("groups", s.groups, kHeads);
  w.Int("conv_kernel", s.conv_kernel, kKernel);
  w.Auto("state_dtype", s.state_dtype);
  w.BoolUnless("draft_rows", s.draft_rows, true);
}

void Walk(auto& w, A<GatedDeltaShape> auto& s) {
  w.Int("key_heads", s.key_heads, kHeads);
  w.Int("value_heads", s.value_heads, kHeads);
  w.Int("key_dim", s.key_dim, kDim);
  w.Int("value_dim", s.value_dim, kDim);
  w.Int("conv_kernel", s.conv_kernel, kKernel);
  w.Auto("state_dtype", s.state_dtype);
}

void Walk(auto& w, A<Mamba1Shape> auto& s) {
  w.Int("inner", s.inner, kDim);
  w.Int("state_dim", s.state_dim, kDim);
  w.Int("conv_kernel", s.conv_kernel, kKernel);
  w.Int("step_rank", s.step_rank, kDimOrNone);
  w.Auto("state_dtype", s.state_dtype);
}

void Walk(auto& w, A<LightningShape> auto& s) {
  w.Int("heads", s.heads, kHeads);
  w.Int("head_dim", s.head_dim, kDim);
}

void Walk(auto& w, A<ShortConvShape> auto& s) {
  w.Int("width", s.width, kDim);
  w.Int("conv_kernel", s.conv_kernel, kKernel);
}

void Walk(auto& w, A<IndexerShape> auto& s) {
  w.Int("heads", s.heads, kHeads);
  w.Int("head_dim", s.head_dim, kDim);
  w.Int("top_k", s.top_k, kTokens);
  w.IntUnless("block", s.block, kTokens, 1);
  w.IntUnless("ratio", s.ratio, kTokens, 1);
  w.BoolUnless("fp8_keys", s.fp8_keys, true);
}

void Walk(auto& w, A<CompressorShape> auto& s) {
  w.Int("ratio", s.ratio, kTokens);
  w.Int("window", s.window, kTokens);
  w.Int("width", s.width, kDim);
}

void Walk(auto& w, A<CrossAttentionShape> auto& s) {
  w.Int("heads", s.heads, kHeads);
  w.Int("kv_heads", s.kv_heads, kHeads);
  w.Int("head_dim", s.head_dim, kDim);
  w.Int("value_dim", s.value_dim, kDim);
  w.Int("encoder_tokens", s.encoder_tokens, kTokens);
}

void Walk(auto& w, A<EncoderAttentionShape> auto& s) {
  w.Int("heads", s.heads, kHeads);
  w.Int("kv_heads", s.kv_heads, kHeads);
  w.Int("head_dim", s.head_dim, kDim);
}

void Walk(auto& w, A<HiddenStateShape> auto& s) {
  w.Int("taps", s.taps, {1, kLayersMax});
  w.Int("width", s.width, kDim);
}

void Walk(auto& w, A<NoMixer> auto& s) { w.BoolUnless("linear", s.linear, false); }

void Walk(auto& w, A<MlpShape> auto& s) {
  w.Int("intermediate", s.intermediate, kDimOrNone);
  w.Int("experts", s.experts, kDimOrNone);
  w.Int("experts_per_token", s.experts_per_token, kDimOrNone);
  w.Int("shared_experts", s.shared_experts, kDimOrNone);
  w.Int("expert_intermediate", s.expert_intermediate, kDimOrNone);
  w.IntUnless("shared_intermediate", s.shared_intermediate, kDimOrNone, 0);
  w.IntUnless("latent", s.latent, kDimOrNone, 0);
  w.BoolUnless("gated", s.gated, true);
  w.EnumUnless("scoring", s.scoring, kExpertScorings, ExpertScoring::kUnstated);
  w.BoolUnless("correction_bias", s.correction_bias, false);
  w.IntUnless("groups", s.groups, kDim, 1);
  w.IntUnless("groups_kept", s.groups_kept, kDim, 1);
  w.BoolUnless("normalise", s.normalise, true);
  w.RealUnless("routed_scale", s.routed_scale, kExpertScale, 1.0);
  w.BoolUnless("latent_norm", s.latent_norm, false);
  w.RealUnless("situ_beta", s.situ_beta, kSituBeta, 0.0);
  w.RealUnless("situ_linear_beta", s.situ_linear_beta, kSituBeta, 0.0);
}

void Walk(auto& w, A<Rope> auto& s) {
  w.Real("theta", s.theta, kTheta);
  w.Real("factor", s.factor, kFactor);
  w.Int("original_context", s.original_context, kTokensOrNone);
  w.Real("beta_fast", s.beta_fast, {0.0, 1e6});
  w.Real("beta_slow", s.beta_slow, {0.0, 1e6});
  w.Real("mscale", s.mscale, {0.0, 1e3});
  w.Real("mscale_all_dim", s.mscale_all_dim, {0.0, 1e3});
  w.EnumUnless("kind", s.kind, kRopeKinds, RopeKind::kYarn);
  w.RealUnless("low_freq_factor", s.low_freq_factor, {0.0, 1e6}, 1.0);
  w.RealUnless("high_freq_factor", s.high_freq_factor, {0.0, 1e6}, 1.0);
  w.RealUnless("partial", s.partial, {0.0, 1.0}, 1.0);
  w.RealUnless("local_theta", s.local_theta, {0.0, 1e12}, 0.0);
}

void Walk(auto& w, A<DraftShape> auto& s) {
  w.Enum("method", s.method, kDraftMethods);
  w.Bool("causal", s.causal);
  w.Layers("taps", s.target_taps);
  w.Int("target_hidden", s.target_hidden, kDim);
  w.Int("target_layers", s.target_layers, {0, kLayersMax});
  w.Int("mask_token", s.mask_token, kDimOrNone);
  w.Int("markov_rank", s.markov_rank, kDimOrNone);
  w.Bool("confidence_head", s.confidence_head);
  w.Bool("own_embedding", s.own_embedding);
  w.Bool("own_head", s.own_head);
  w.BoolUnless("windowed_causal", s.windowed_causal, false);
  w.IntUnless("block", s.block, kTokensOrNone, 0);
  w.IntUnless("head_vocab", s.head_vocab, kDimOrNone, 0);
  w.IntUnless("gru_dim", s.gru_dim, kDimOrNone, 0);
  w.IntUnless("gru_embedding", s.gru_embedding, kDimOrNone, 0);
  w.EnumUnless("markov_head", s.markov_head, kMarkovHeads, MarkovHead::kVanilla);
  w.BoolUnless("confidence_markov", s.confidence_markov, true);
}

void Walk(auto& w, A<EncoderShape> auto& s) {
  w.Int("layers", s.layers, {1, kLayersMax});
  w.Int("heads", s.heads, kHeads);
  w.Int("head_dim", s.head_dim, kDim);
  w.Int("intermediate", s.intermediate, kDim);
  w.Int("tokens", s.tokens, kTokens);
}

void Walk(auto& w, A<WeightQuantisation> auto& s) {
  w.Text("method", s.method);
  w.Format("mixers", s.mixers);
  w.Format("dense", s.dense);
  w.Format("experts", s.experts);
  w.Format("shared", s.shared);
  w.Format("head", s.head);
  w.Auto("cache_dtype", s.cache_dtype);
}

}  // namespace kvasir::model_fields

namespace kvasir {

// "dspark", "eagle3".
[[nodiscard]] constexpr std::string_view DraftMethodName(DraftMethod method) {
  for (const auto& [known, word] : model_fields::kDraftMethods) {
    if (known == method) return word;
  }
  return "unknown";
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MODEL_FIELDS_H_
