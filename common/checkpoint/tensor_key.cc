#include "common/checkpoint/tensor_key.h"

#include <array>
#include <charconv>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

enum class Scope : std::int8_t { kModel, kLayer, kExpert };

struct KindRow {
  TensorKind kind;
  Scope scope;
  std::string_view word;
};

constexpr std::array kKinds = {
    KindRow{TensorKind::kEmbedding, Scope::kModel, "embedding"},
    KindRow{TensorKind::kMaskEmbedding, Scope::kModel, "mask_embedding"},
    KindRow{TensorKind::kFinalNorm, Scope::kModel, "final_norm"},
    KindRow{TensorKind::kHead, Scope::kModel, "head"},
    KindRow{TensorKind::kContextProj, Scope::kModel, "context_proj"},
    KindRow{TensorKind::kContextNorm, Scope::kModel, "context_norm"},
    KindRow{TensorKind::kTokenNorm, Scope::kModel, "token_norm"},
    KindRow{TensorKind::kStateNorm, Scope::kModel, "state_norm"},
    KindRow{TensorKind::kPairProj, Scope::kModel, "pair_proj"},
    KindRow{TensorKind::kMarkovIn, Scope::kModel, "markov_in"},
    KindRow{TensorKind::kMarkovOut, Scope::kModel, "markov_out"},
    KindRow{TensorKind::kMarkovGate, Scope::kModel, "markov_gate"},
    KindRow{TensorKind::kMarkovGateBias, Scope::kModel, "markov_gate_bias"},
    KindRow{TensorKind::kMarkovJoint, Scope::kModel, "markov_joint"},
    KindRow{TensorKind::kMarkovJointBias, Scope::kModel, "markov_joint_bias"},
    KindRow{TensorKind::kConfidence, Scope::kModel, "confidence"},
    KindRow{TensorKind::kConfidenceBias, Scope::kModel, "confidence_bias"},
    KindRow{TensorKind::kOutputResidualNorm, Scope::kModel, "output_residual_norm"},
    KindRow{TensorKind::kOutputResidualProj, Scope::kModel, "output_residual_proj"},
    KindRow{TensorKind::kAttentionNorm, Scope::kLayer, "attention_norm"},
    KindRow{TensorKind::kMlpNorm, Scope::kLayer, "mlp_norm"},
    KindRow{TensorKind::kQDown, Scope::kLayer, "q_down"},
    KindRow{TensorKind::kQNorm, Scope::kLayer, "q_norm"},
    KindRow{TensorKind::kQUp, Scope::kLayer, "q_up"},
    KindRow{TensorKind::kKvDown, Scope::kLayer, "kv_down"},
    KindRow{TensorKind::kKvNorm, Scope::kLayer, "kv_norm"},
    KindRow{TensorKind::kKvUp, Scope::kLayer, "kv_up"},
    KindRow{TensorKind::kGate, Scope::kLayer, "gate"},
    KindRow{TensorKind::kOut, Scope::kLayer, "out"},
    KindRow{TensorKind::kQ, Scope::kLayer, "q"},
    KindRow{TensorKind::kK, Scope::kLayer, "k"},
    KindRow{TensorKind::kV, Scope::kLayer, "v"},
    KindRow{TensorKind::kKNorm, Scope::kLayer, "k_norm"},
    KindRow{TensorKind::kQConv, Scope::kLayer, "q_conv"},
    KindRow{TensorKind::kKConv, Scope::kLayer, "k_conv"},
    KindRow{TensorKind::kVConv, Scope::kLayer, "v_conv"},
    KindRow{TensorKind::kDecayLog, Scope::kLayer, "decay_log"},
    KindRow{TensorKind::kDecayDown, Scope::kLayer, "decay_down"},
    KindRow{TensorKind::kDecayUp, Scope::kLayer, "decay_up"},
    KindRow{TensorKind::kDecayBias, Scope::kLayer, "decay_bias"},
    KindRow{TensorKind::kBeta, Scope::kLayer, "beta"},
    KindRow{TensorKind::kGateDown, Scope::kLayer, "gate_down"},
    KindRow{TensorKind::kGateUp, Scope::kLayer, "gate_up"},
    KindRow{TensorKind::kHeadNorm, Scope::kLayer, "head_norm"},
    KindRow{TensorKind::kMlpGate, Scope::kLayer, "mlp_gate"},
    KindRow{TensorKind::kMlpUp, Scope::kLayer, "mlp_up"},
    KindRow{TensorKind::kMlpDown, Scope::kLayer, "mlp_down"},
    KindRow{TensorKind::kRouter, Scope::kLayer, "router"},
    KindRow{TensorKind::kRouterBias, Scope::kLayer, "router_bias"},
    KindRow{TensorKind::kSharedGate, Scope::kLayer, "shared_gate"},
    KindRow{TensorKind::kSharedUp, Scope::kLayer, "shared_up"},
    KindRow{TensorKind::kSharedDown, Scope::kLayer, "shared_down"},
    KindRow{TensorKind::kLatentDown, Scope::kLayer, "latent_down"},
    KindRow{TensorKind::kLatentNorm, Scope::kLayer, "latent_norm"},
    KindRow{TensorKind::kLatentUp, Scope::kLayer, "latent_up"},
    KindRow{TensorKind::kAttentionResidualNorm, Scope::kLayer, "attention_residual_norm"},
    KindRow{TensorKind::kAttentionResidualProj, Scope::kLayer, "attention_residual_proj"},
    KindRow{TensorKind::kMlpResidualNorm, Scope::kLayer, "mlp_residual_norm"},
    KindRow{TensorKind::kMlpResidualProj, Scope::kLayer, "mlp_residual_proj"},
    KindRow{TensorKind::kExpertGate, Scope::kExpert, "gate"},
    KindRow{TensorKind::kExpertUp, Scope::kExpert, "up"},
    KindRow{TensorKind::kExpertDown, Scope::kExpert, "down"},
};

// "<word>N." at the front of `text`, which is left behind it; nullopt where there is none.
std::optional<std::int32_t> TakeNumber(std::string_view word, std::string_view& text) {
  if (!text.starts_with(word)) return std::nullopt;
  const std::string_view rest = text.substr(word.size());
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  const bool plain = digits == 1 || (digits > 1 && rest[0] != '0');
  if (error != std::errc() || number < 0 || !plain) return std::nullopt;
  if (digits == rest.size() || rest[digits] != '.') return std::nullopt;
  text = rest.substr(digits + 1);
  return number;
}

}  // namespace

std::string KeyText(const TensorKey& key) {
  std::string text;
  if (key.layer >= 0) text += absl::StrFormat("layers.%d.", key.layer);
  if (key.expert >= 0) text += absl::StrFormat("experts.%d.", key.expert);
  for (const KindRow& row : kKinds) {
    if (row.kind == key.kind) text += row.word;
  }
  return text;
}

std::optional<TensorKey> ParseKey(std::string_view text) {
  TensorKey key;
  Scope scope = Scope::kModel;
  if (const std::optional<std::int32_t> layer = TakeNumber("layers.", text)) {
    key.layer = *layer;
    scope = Scope::kLayer;
    if (const std::optional<std::int32_t> expert = TakeNumber("experts.", text)) {
      key.expert = *expert;
      scope = Scope::kExpert;
    }
  }
  for (const KindRow& row : kKinds) {
    if (row.scope != scope || row.word != text) continue;
    key.kind = row.kind;
    return key;
  }
  return std::nullopt;
}

}  // namespace kvasir
