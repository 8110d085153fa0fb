// What a model is made of, as far as its caches and its forward pass need: read from a Hugging Face
// config.json or from the built-in catalogue, written as canonical text, sent to workers, fingerprinted in
// plans. Sizes are of the whole model, before tensor parallelism. Sources of the field meanings:
// docs/formats/model_text.md.
#ifndef KVASIR_COMMON_MODELS_MODEL_DESCRIPTION_H_
#define KVASIR_COMMON_MODELS_MODEL_DESCRIPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/geometry/dtype.h"

namespace kvasir {

// ---- What mixes tokens in a layer, and what it keeps for that ----

// Grouped-query attention: with full context, a sliding window, or chunks (local attention, a row sees its
// own chunk only). Cache row = kv_heads * (head_dim + value_dim).
struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t window = 0;  // tokens; 0 = none. At most one of window and chunk is set
  std::int64_t chunk = 0;   // tokens; 0 = none
  bool sinks = false;       // each head has a learned logit beside its scores; it takes no cache
  bool output_gate = false;
  std::optional<std::int32_t>
      shares_with;  // the earlier layer whose cache this one reads; it keeps none then
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// Multi-head latent attention: cache row = kv_lora_rank + rope_dim, whatever the heads.
struct MlaShape {
  std::int64_t heads = 0;
  std::int64_t q_lora_rank = 0;  // 0: queries are projected directly
  std::int64_t kv_lora_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
  bool rotate = true;        // false: NoPE; the rope lanes stay in the row, unrotated
  bool output_gate = false;  // a sigmoid gate on the heads' output before the output projection
  std::int64_t window = 0;   // tokens; 0 = none
  std::int64_t ratio = 1;    // tokens behind one row; above 1 the cache is compressed
  bool sinks = false;
  std::int64_t o_lora_rank = 0;  // of each output group; 0: the heads' output is projected directly
  std::int64_t o_groups = 0;     // groups of heads that are projected down apart; 0 without o_lora_rank
  friend bool operator==(const MlaShape&, const MlaShape&) = default;
};

// Keys alone, by which sparse attention picks the rows that it reads. Row = head_dim (one key for all heads).
struct IndexerShape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;  // rows picked per query; blocks of `block` rows where block > 1
  std::int64_t block = 1;
  std::int64_t ratio = 1;  // tokens behind one row
  bool fp8_keys = true;    // fp8 keys, one f32 scale for each 128 lanes; else the model's dtype
  friend bool operator==(const IndexerShape&, const IndexerShape&) = default;
};

// What a compressed cache needs of the last `window` tokens to form its next row: `width` f32 a token.
struct CompressorShape {
  std::int64_t ratio = 0;
  std::int64_t window = 0;
  std::int64_t width = 0;
  friend bool operator==(const CompressorShape&, const CompressorShape&) = default;
};

// Attention over an encoder's output; rows are written once, for each of at most `encoder_tokens`.
struct CrossAttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t encoder_tokens = 0;
  friend bool operator==(const CrossAttentionShape&, const CrossAttentionShape&) = default;
};

// Attention within one pass over the whole input (encoders): keeps nothing.
struct EncoderAttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  friend bool operator==(const EncoderAttentionShape&, const EncoderAttentionShape&) = default;
};

// Hidden states of `taps` layers, kept per token for whoever reads them: row = taps * width.
struct HiddenStateShape {
  std::int64_t taps = 0;
  std::int64_t width = 0;
  friend bool operator==(const HiddenStateShape&, const HiddenStateShape&) = default;
};

// Recurrent mixers. Their convolution's state has the dtype of the state cache (the model's, unless an engine
// is told otherwise); `state_dtype` is that of the recurrent state, nullopt where it follows the
// convolution's.

// Kimi Delta Attention: per head a [head_dim, head_dim] f32 state and a short convolution over q, k, v.
struct KdaShape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t conv_kernel = 0;
  bool full_rank_gate = false;
  friend bool operator==(const KdaShape&, const KdaShape&) = default;
};

// Mamba-1: per channel a [state_dim] state and a short convolution over the channels.
struct Mamba1Shape {
  std::int64_t inner = 0;  // channels
  std::int64_t state_dim = 0;
  std::int64_t conv_kernel = 0;
  std::int64_t step_rank = 0;
  std::optional<DType> state_dtype = std::nullopt;
  friend bool operator==(const Mamba1Shape&, const Mamba1Shape&) = default;
};

// Mamba-2: per head a [head_dim, state_dim] state and a short convolution.
struct Mamba2Shape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t state_dim = 0;
  std::int64_t groups = 0;
  std::int64_t conv_kernel = 0;
  std::optional<DType> state_dtype = DType::kF32;
  bool draft_rows = true;  // whether the convolution's state holds a row more for each drafted token
  friend bool operator==(const Mamba2Shape&, const Mamba2Shape&) = default;
};

// Gated delta net: per value head a [value_dim, key_dim] state and a short convolution over q, k, v.
struct GatedDeltaShape {
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t conv_kernel = 0;
  std::optional<DType> state_dtype = std::nullopt;
  friend bool operator==(const GatedDeltaShape&, const GatedDeltaShape&) = default;
};

// Lightning (linear) attention: per head a [head_dim, head_dim] state, of the state cache's dtype.
struct LightningShape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  friend bool operator==(const LightningShape&, const LightningShape&) = default;
};

// A gated short convolution on its own.
struct ShortConvShape {
  std::int64_t width = 0;
  std::int64_t conv_kernel = 0;
  friend bool operator==(const ShortConvShape&, const ShortConvShape&) = default;
};

// Nothing mixes tokens here: a bare MLP or experts, or nothing at all.
struct NoMixer {
  bool linear = false;  // one hidden x hidden matrix stands in attention's place
  friend bool operator==(const NoMixer&, const NoMixer&) = default;
};

using MixerShape = std::variant<AttentionShape, MlaShape, KdaShape, Mamba2Shape, GatedDeltaShape, Mamba1Shape,
                                LightningShape, ShortConvShape, IndexerShape, CompressorShape,
                                CrossAttentionShape, EncoderAttentionShape, HiddenStateShape, NoMixer>;

// ---- What surrounds the mixers; enough to count weights ----

struct MlpShape {
  std::int64_t intermediate = 0;  // of the dense MLP (beside the experts too, where a layer has both)
  std::int64_t experts = 0;       // routed; 0 for a dense MLP
  std::int64_t experts_per_token = 0;
  std::int64_t shared_experts = 0;
  std::int64_t expert_intermediate = 0;
  std::int64_t shared_intermediate = 0;  // of all shared experts together; 0 = shared_experts * expert_...
  std::int64_t latent = 0;               // width that routed experts work in; 0 = the model's hidden
  bool gated = true;                     // three matrices (gate, up, down); false: two
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
  kYarn,  // and the plain embedding, which is factor 1
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

// ---- Drafts ----

enum class DraftMethod : std::int8_t { kDspark, kEagle, kEagle3, kMtp, kDflash, kDflare, kDomino, kPeagle };

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
  bool multimodal = false;  // with vision or audio parts, whose weights are not described
  friend bool operator==(const ModelDescription&, const ModelDescription&) = default;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MODEL_DESCRIPTION_H_
