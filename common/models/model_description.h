// What a model is made of, as far as its caches and its forward pass need: read from a Hugging Face
// config.json or from the built-in catalogue, written as canonical text, sent to workers, fingerprinted in
// plans. Sizes are of the whole model, before tensor parallelism. Sources of the field meanings:
// docs/formats/model_text.md.
#ifndef KVASIR_COMMON_MODELS_MODEL_DESCRIPTION_H_
#define KVASIR_COMMON_MODELS_MODEL_DESCRIPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/geometry/dtype.h"
#include "common/models/mixer_shapes.h"

namespace kvasir {

// What makes scores of a router's logits.
enum class ExpertScoring : std::int8_t {
  kUnstated,  // the family's routing is not described: such a layer can be planned, not run
  kSoftmax,   // over all experts
  kSigmoid,   // of each expert
};

// `scoring` to `routed_scale` say how a token's experts are chosen; worker/engine/launch.h has the formula
// (RouteExpertsOp). With a correction bias experts are chosen by score + bias and a group of experts counts
// as the sum of its two best; without one by the score and the group's best. Weights are scores either way.
struct MlpShape {
  std::int64_t intermediate = 0;  // of the dense MLP (beside the experts too, where a layer has both)
  std::int64_t experts = 0;       // routed; 0 for a dense MLP
  std::int64_t experts_per_token = 0;
  std::int64_t shared_experts = 0;
  std::int64_t expert_intermediate = 0;
  std::int64_t shared_intermediate = 0;  // of all shared experts together; 0 = shared_experts * expert_...
  std::int64_t latent = 0;               // width that routed experts work in; 0 = the model's hidden
  bool gated = true;                     // three matrices (gate, up, down); false: two
  ExpertScoring scoring = ExpertScoring::kUnstated;
  bool correction_bias = false;
  std::int64_t groups = 1;       // of consecutive experts, equal in size
  std::int64_t groups_kept = 1;  // chosen first; experts come from these alone
  bool normalise = true;         // chosen weights are divided by their sum
  double routed_scale = 1.0;     // then multiplied with this
  bool latent_norm = false;      // an RMS norm over the experts' summed latent, before it is projected back
  // SiTU instead of SiLU, in every MLP of the layer (0: SiLU):
  // situ_beta * tanh(gate / situ_beta) * sigmoid(gate) * up, with up limited in the same way by
  // situ_linear_beta (0: not at all).
  double situ_beta = 0.0;
  double situ_linear_beta = 0.0;
  // Width of all shared experts together.
  [[nodiscard]] std::int64_t shared_width() const {
    return shared_intermediate > 0 ? shared_intermediate : shared_experts * expert_intermediate;
  }
  friend bool operator==(const MlpShape&, const MlpShape&) = default;
};

struct ModelLayer {
  std::int32_t index = 0;  // 0-based
  MixerShape mixer;
  MlpShape mlp;
  // Further caches of the layer, after the mixer's, in the order in which an engine registers them: an
  // indexer, a compressed cache and its compressor, the Mamba-2 half of a parallel block, a second attention.
  std::vector<MixerShape> extra = {};
  friend bool operator==(const ModelLayer&, const ModelLayer&) = default;
};

enum class RopeKind : std::int8_t {
  kYarn,  // the plain embedding where the factor is 1
  kLinear,
  kDynamic,
  kLlama3,
  kLongrope,      // per-lane factors, which are not kept
  kProportional,  // the partial share of the lanes turns, at the full width's frequencies
};

struct Rope {
  double theta = 10000.0;
  double factor = 1.0;
  std::int64_t original_context = 0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double mscale = 1.0;
  double mscale_all_dim = 0.0;
  RopeKind kind = RopeKind::kYarn;
  double low_freq_factor = 1.0;   // kLlama3
  double high_freq_factor = 1.0;  // kLlama3
  double partial = 1.0;           // share of a head's lanes that turns
  double local_theta = 0.0;       // of layers with a window, where it differs; 0 = theta
  friend bool operator==(const Rope&, const Rope&) = default;
};

// How one class of weights is stored.
struct WeightFormat {
  std::int64_t bits = 0;        // of one weight; 0: the model's dtype
  std::int64_t group = 0;       // weights that share a scale; 0: a row or a tensor, too few to count
  std::int64_t scale_bits = 0;  // of one such scale
  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};

// Embeddings, norms, routers and convolutions keep the model's dtype.
struct WeightQuantisation {
  std::string method;    // as the file names it: "fp8", "compressed-tensors", "modelopt"; empty: none
  WeightFormat mixers;   // attention and recurrent projections
  WeightFormat dense;    // dense MLPs
  WeightFormat experts;  // routed
  WeightFormat shared;   // shared experts
  WeightFormat head;     // the output head
  std::optional<DType> cache_dtype;  // of per-token caches, where the checkpoint brings scales for them
  friend bool operator==(const WeightQuantisation&, const WeightQuantisation&) = default;
};

enum class DraftMethod : std::int8_t { kDspark, kEagle, kEagle3, kMtp, kDflash, kDflare, kDomino, kPeagle };

// How DSpark's Markov head makes a bias of the token before: from its row alone, from the row behind a gate
// that sees the hidden state, or from a state carried along the block.
enum class MarkovHead : std::int8_t { kVanilla, kGated, kRnn };

// What makes a model a draft of another.
struct DraftShape {
  DraftMethod method = DraftMethod::kDspark;
  bool causal = false;                    // inside the drafted block
  std::vector<std::int64_t> target_taps;  // target layers whose outputs feed the draft, ascending; empty
                                          // where the engine chooses (EAGLE, EAGLE-3, MTP)
  std::int64_t target_hidden = 0;
  std::int64_t target_layers = 0;  // of the target it was trained for; 0: not said
  std::int64_t mask_token = 0;
  std::int64_t markov_rank = 0;  // 0: no Markov head
  bool confidence_head = false;
  bool own_embedding = false;  // ships its own table; else the target's is used
  bool own_head = false;
  bool windowed_causal = false;  // as `causal`, of layers with a window
  std::int64_t block = 0;        // tokens drafted at once, as trained; 0: not said
  std::int64_t head_vocab = 0;   // of its own head where that is smaller than the vocabulary; 0 = the same
  std::int64_t gru_dim = 0;      // Domino's recurrent head, and the width of its embeddings; 0: none
  std::int64_t gru_embedding = 0;
  MarkovHead markov_head = MarkovHead::kVanilla;
  bool confidence_markov = true;  // the confidence head sees the Markov head's row too
  // Whether row k of the drafted block predicts the token in its own place, so that a block of N drafted
  // tokens has N + 1 rows; else (DSpark) it predicts the one after, and the block has N.
  [[nodiscard]] bool AnchorPredictsNothing() const {
    return method == DraftMethod::kDflash || method == DraftMethod::kDflare || method == DraftMethod::kDomino;
  }
  // Whether tokens are drafted one after the other, each from the state behind the one before, which the
  // first takes from the target's last committed token; else a block is drafted at once.
  [[nodiscard]] bool IsChain() const {
    return method == DraftMethod::kMtp || method == DraftMethod::kEagle || method == DraftMethod::kEagle3;
  }
  friend bool operator==(const DraftShape&, const DraftShape&) = default;
};

// The stack in front of a decoder with cross attention; it keeps nothing.
struct EncoderShape {
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;
  std::int64_t tokens = 0;  // longest input
  friend bool operator==(const EncoderShape&, const EncoderShape&) = default;
};

struct ModelDescription {
  std::string name;          // "moonshotai/Kimi-K3"
  std::string architecture;  // "KimiK3ForConditionalGeneration"
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t context = 0;  // longest sequence the model claims, tokens
  DType dtype = DType::kBf16;
  double rms_eps = 1e-6;
  Rope rope;
  bool tied_embedding = false;
  std::vector<ModelLayer> layers;   // by index, dense from 0
  std::optional<DraftShape> draft;  // set for a draft
  // Multi-token prediction: how many tokens ahead the checkpoint's own layers predict (0: it has none), and
  // those layers, numbered from 0. mtp_draft.h makes a draft of them.
  std::int64_t mtp_depth = 0;
  std::vector<ModelLayer> mtp_layers;
  std::optional<EncoderShape> encoder;
  WeightQuantisation quantisation;
  std::int64_t layer_embedding = 0;  // width of a table of token embeddings that each layer has; 0: none
  std::int64_t residual_block = 0;   // Kimi-K3's attention residuals, over blocks of so many layers; 0: none
  bool multimodal = false;           // with vision or audio parts, whose weights are not described
  friend bool operator==(const ModelDescription&, const ModelDescription&) = default;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MODEL_DESCRIPTION_H_
