// What a tensor is to the engine, whatever a family's files call it. A key has a text, by which the engine
// declares its weights: "embedding", "layers.3.q_up", "layers.3.experts.17.down".
#ifndef KVASIR_COMMON_CHECKPOINT_TENSOR_KEY_H_
#define KVASIR_COMMON_CHECKPOINT_TENSOR_KEY_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir {

// Shapes are [out, in]; H is heads, D a head's width.
enum class TensorKind : std::int8_t {
  // Of the model.
  kEmbedding,       // [vocab, hidden]
  kMaskEmbedding,   // drafts: [hidden], of rows without a token
  kFinalNorm,       // [hidden]
  kHead,            // [vocab, hidden]
  kContextProj,     // drafts: [hidden, taps * target_hidden]
  kContextNorm,     // drafts: [hidden]
  kTokenNorm,       // MTP: [hidden], of the token's embedding
  kStateNorm,       // MTP: [hidden], of the state before it
  kPairProj,        // MTP: [hidden, 2 * hidden], over [token; state]
  kMarkovIn,        // [vocab, rank]
  kMarkovOut,       // [vocab, rank]; the bias is this times a row of kMarkovIn
  kMarkovGate,      // gated: [rank, hidden + rank], over [hidden state; row]
  kMarkovGateBias,  // [rank]
  kMarkovJoint,     // rnn: [3 rank, rank + rank + hidden], (gate, candidate, output) over [state; row; hidden
                    // state]
  kMarkovJointBias,     // [3 rank]
  kConfidence,          // [1, hidden + rank], over [hidden state; row], or [1, hidden]
  kConfidenceBias,      // [1]
  kOutputResidualNorm,  // Kimi-K3's attention over earlier blocks' residuals: [hidden]
  kOutputResidualProj,  // [1, hidden]
  // Of a layer.
  kAttentionNorm,  // [hidden]
  kMlpNorm,        // [hidden]
  kQDown,          // MLA: [q_lora, hidden]
  kQNorm,          // [q_lora]; of plain attention [D], of each head
  kQUp,            // [H * (nope + rope), q_lora or hidden]
  kKvDown,         // [latent + rope, hidden]
  kKvNorm,         // [latent]
  kKvUp,           // [H * (nope + value), latent]; of each head the key rows, then the value rows
  kGate,           // output gate: [H * value, hidden]
  kOut,            // [hidden, H * value]
  kQ,              // KDA and plain attention: [H * D, hidden]
  kK,
  kV,
  kKNorm,  // plain attention: [D], of each head
  kQConv,  // KDA: [H * D, kernel]
  kKConv,
  kVConv,
  kDecayLog,               // KDA's A_log: [H]
  kDecayDown,              // f_a: [D, hidden]
  kDecayUp,                // f_b: [H * D, D]
  kDecayBias,              // dt_bias: [H * D]
  kBeta,                   // [H, hidden]
  kGateDown,               // g_a: [D, hidden]; a full-rank gate is kGate, [H * D, hidden]
  kGateUp,                 // g_b: [H * D, D]
  kHeadNorm,               // KDA's o_norm: [D], of each head
  kMlpGate,                // [intermediate, hidden]
  kMlpUp,                  // [intermediate, hidden]
  kMlpDown,                // [hidden, intermediate]
  kRouter,                 // [experts, hidden]
  kRouterBias,             // [experts]; added to scores when experts are picked
  kSharedGate,             // all shared experts together: [shared, hidden]
  kSharedUp,               // [shared, hidden]
  kSharedDown,             // [hidden, shared]
  kLatentDown,             // in front of routed experts: [latent, hidden]
  kLatentNorm,             // [latent]
  kLatentUp,               // [hidden, latent]
  kAttentionResidualNorm,  // Kimi-K3: [hidden]
  kAttentionResidualProj,  // [1, hidden]
  kMlpResidualNorm,        // [hidden]
  kMlpResidualProj,        // [1, hidden]
  // Of an expert of a layer.
  kExpertGate,  // [intermediate, hidden or latent]
  kExpertUp,    // [intermediate, hidden or latent]
  kExpertDown,  // [hidden or latent, intermediate]
};

struct TensorKey {
  TensorKind kind = TensorKind::kEmbedding;
  std::int32_t layer = -1;   // -1: of the model
  std::int32_t expert = -1;  // -1: of no expert
  friend auto operator<=>(const TensorKey&, const TensorKey&) = default;
};

[[nodiscard]] std::string KeyText(const TensorKey& key);
// The inverse of KeyText; nullopt for any other text.
[[nodiscard]] std::optional<TensorKey> ParseKey(std::string_view text);

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_TENSOR_KEY_H_
