#include "common/models/check_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"

namespace kvasir {
namespace {

// Keeps the first fault and stays silent after it.
class Checker {
 public:
  void Range(std::string field, std::int64_t value, std::int64_t min, std::int64_t max) {
    if (value >= min && value <= max) return;
    Report(ConfigFault::kOutOfLimit, std::move(field), absl::StrFormat("%d", value),
           absl::StrFormat("expected an integer from %d to %d", min, max));
  }

  void Real(std::string field, double value, double min, double max) {
    if (std::isfinite(value) && value >= min && value <= max && !std::signbit(value)) return;
    Report(ConfigFault::kOutOfLimit, std::move(field), absl::StrFormat("%g", value),
           absl::StrFormat("expected a number from %g to %g", min, max));
  }

  void Require(bool holds, std::string field, std::int64_t value, std::string fix) {
    if (!holds) {
      Report(ConfigFault::kContradiction, std::move(field), absl::StrFormat("%d", value), std::move(fix));
    }
  }

  void Report(ConfigFault fault, std::string field, std::string value, std::string fix) {
    if (!error_.has_value()) error_ = ConfigError{fault, std::move(field), std::move(value), std::move(fix)};
  }

  [[nodiscard]] std::optional<ConfigError> Take() { return std::move(error_); }

 private:
  std::optional<ConfigError> error_;
};

struct MixerChecker {
  Checker& check;
  const std::string& where;  // "layer 3 "

  void operator()(const AttentionShape& s) const {
    check.Range(where + "heads", s.heads, 1, kHeadsMax);
    check.Range(where + "kv_heads", s.kv_heads, 1, kHeadsMax);
    check.Range(where + "head_dim", s.head_dim, 1, kDimMax);
    check.Range(where + "value_dim", s.value_dim, 1, kDimMax);
    check.Range(where + "window", s.window, 0, kContextTokensMax);
    check.Require(s.kv_heads < 1 || s.heads % s.kv_heads == 0, where + "kv_heads", s.kv_heads,
                  absl::StrFormat("it must divide heads = %d", s.heads));
  }

  void operator()(const MlaShape& s) const {
    check.Range(where + "heads", s.heads, 1, kHeadsMax);
    check.Range(where + "q_lora_rank", s.q_lora_rank, 0, kDimMax);
    check.Range(where + "kv_lora_rank", s.kv_lora_rank, 1, kDimMax);
    check.Range(where + "nope_dim", s.nope_dim, 1, kDimMax);
    check.Range(where + "rope_dim", s.rope_dim, 1, kDimMax);
    check.Range(where + "value_dim", s.value_dim, 1, kDimMax);
    check.Require(!s.rotate || s.rope_dim % 2 == 0, where + "rope_dim", s.rope_dim,
                  "a rotary embedding turns pairs of lanes: expected an even number");
  }

  void operator()(const KdaShape& s) const {
    check.Range(where + "heads", s.heads, 1, kHeadsMax);
    check.Range(where + "head_dim", s.head_dim, 1, kDimMax);
    check.Range(where + "conv_kernel", s.conv_kernel, 2, kDimMax);
    if (s.heads > kHeadsMax || s.head_dim > kDimMax) return;
    Elements(s.heads * s.head_dim * s.head_dim, "the recurrent state");
    Convolution(s.conv_kernel, 3 * s.heads * s.head_dim);
  }

  void operator()(const Mamba2Shape& s) const {
    check.Range(where + "heads", s.heads, 1, kHeadsMax);
    check.Range(where + "head_dim", s.head_dim, 1, kDimMax);
    check.Range(where + "state_dim", s.state_dim, 1, kDimMax);
    check.Range(where + "groups", s.groups, 1, kHeadsMax);
    check.Range(where + "conv_kernel", s.conv_kernel, 2, kDimMax);
    check.Require(s.state_dtype != DType::kFp8E4M3, where + "state_dtype", 0, "expected bf16, f16 or f32");
    check.Require(s.groups < 1 || s.heads % s.groups == 0, where + "groups", s.groups,
                  absl::StrFormat("it must divide heads = %d", s.heads));
    if (s.heads > kHeadsMax || s.head_dim > kDimMax || s.groups > kHeadsMax || s.state_dim > kDimMax) return;
    Elements(s.heads * s.head_dim * s.state_dim, "the recurrent state");
    Convolution(s.conv_kernel, s.heads * s.head_dim + 2 * s.groups * s.state_dim);
  }

  template <typename Shape>
  void operator()(const Shape&) const {}

  // The callers bound each factor before they form a product: 2^12 * 2^20 * 2^20 still fits 64 bits.
  void Convolution(std::int64_t kernel, std::int64_t width) const {
    if (kernel > kDimMax) return;
    Elements((kernel - 1) * width, "the convolution's state");
  }

  void Elements(std::int64_t elements, std::string_view what) const {
    if (elements <= kStateElementsMax) return;
    check.Report(ConfigFault::kOutOfLimit, where + "head_dim", "",
                 absl::StrFormat("%s has %d elements; at most %d", what, elements, kStateElementsMax));
  }
};

void CheckMlp(Checker& check, const std::string& where, const MlpShape& mlp) {
  check.Range(where + "intermediate", mlp.intermediate, 0, kDimMax);
  check.Range(where + "experts", mlp.experts, 0, kDimMax);
  check.Range(where + "experts_per_token", mlp.experts_per_token, 0, kDimMax);
  check.Range(where + "shared_experts", mlp.shared_experts, 0, kDimMax);
  check.Range(where + "expert_intermediate", mlp.expert_intermediate, 0, kDimMax);
  if (mlp.experts == 0) {
    check.Require(mlp.experts_per_token == 0 && mlp.shared_experts == 0 && mlp.expert_intermediate == 0,
                  where + "experts", mlp.experts,
                  "the layer has no experts, so the other expert fields must be 0");
    return;
  }
  check.Require(mlp.intermediate == 0, where + "intermediate", mlp.intermediate,
                "a mixture of experts has no dense MLP: expected 0");
  check.Require(mlp.experts_per_token >= 1 && mlp.experts_per_token <= mlp.experts,
                where + "experts_per_token", mlp.experts_per_token,
                absl::StrFormat("expected 1 .. experts = %d", mlp.experts));
  check.Require(mlp.expert_intermediate >= 1, where + "expert_intermediate", mlp.expert_intermediate,
                "experts need a width of at least 1");
}

void CheckRope(Checker& check, const Rope& rope) {
  check.Real("rope theta", rope.theta, 1.0, 1e12);
  check.Real("rope factor", rope.factor, 1.0, 1e6);
  check.Range("rope original_context", rope.original_context, rope.factor > 1.0 ? 1 : 0, kContextTokensMax);
  check.Real("rope beta_fast", rope.beta_fast, 0.0, 1e6);
  check.Real("rope beta_slow", rope.beta_slow, 0.0, 1e6);
  check.Real("rope mscale", rope.mscale, 0.0, 1e3);
  check.Real("rope mscale_all_dim", rope.mscale_all_dim, 0.0, 1e3);
}

void CheckDraft(Checker& check, const ModelDescription& model, const DraftShape& draft) {
  check.Range("draft target_hidden", draft.target_hidden, 1, kDimMax);
  check.Range("draft target_layers", draft.target_layers, 1, kLayersMax);
  check.Range("draft mask_token", draft.mask_token, 0, kDimMax);
  check.Require(draft.mask_token < model.vocab, "draft mask_token", draft.mask_token,
                absl::StrFormat("expected a token below vocab = %d", model.vocab));
  check.Range("draft markov_rank", draft.markov_rank, 0, kDimMax);
  check.Range("draft taps", static_cast<std::int64_t>(draft.target_taps.size()), 1, kLayersMax);
  std::int64_t previous = -1;
  for (const std::int64_t tap : draft.target_taps) {
    check.Require(tap > previous, "draft taps", tap, "target layers must be 0 or more, and ascending");
    check.Require(tap < draft.target_layers, "draft taps", tap,
                  absl::StrFormat("the target has %d layers, numbered from 0", draft.target_layers));
    previous = tap;
  }
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
  Checker check;
  constexpr std::string_view kNameFix = "expected 1 to 256 letters, digits or ._/+:@-";
  if (!IsModelName(model.name)) {
    check.Report(ConfigFault::kOutOfLimit, "name", model.name, std::string(kNameFix));
  }
  if (!IsModelName(model.architecture)) {
    check.Report(ConfigFault::kOutOfLimit, "architecture", model.architecture, std::string(kNameFix));
  }
  check.Range("hidden", model.hidden, 1, kDimMax);
  check.Range("vocab", model.vocab, 1, kDimMax);
  check.Range("context", model.context, 1, kContextTokensMax);
  check.Require(model.dtype != DType::kFp8E4M3, "dtype", 0, "weights are described as bf16, f16 or f32");
  check.Real("rms_eps", model.rms_eps, 1e-30, 1.0);
  CheckRope(check, model.rope);
  check.Range("layers", static_cast<std::int64_t>(model.layers.size()), 1, kLayersMax);
  std::int64_t expected = 0;
  for (const ModelLayer& layer : model.layers) {
    const std::string where = absl::StrFormat("layer %d ", layer.index);
    check.Require(layer.index == expected, where + "index", layer.index,
                  absl::StrFormat("layers are numbered from 0 without gaps: expected %d", expected));
    std::visit(MixerChecker{check, where}, layer.mixer);
    CheckMlp(check, where, layer.mlp);
    ++expected;
  }
  if (model.draft.has_value()) CheckDraft(check, model, *model.draft);
  return check.Take();
}

}  // namespace kvasir
