// What mixes tokens in a layer, and what it keeps for that: one shape for each kind of cache. Sizes are of
// the whole model, before tensor parallelism. Sources of the field meanings: docs/formats/model_text.md.
#ifndef KVASIR_COMMON_MODELS_MIXER_SHAPES_H_
#define KVASIR_COMMON_MODELS_MIXER_SHAPES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "common/geometry/dtype.h"

namespace kvasir {

// Grouped-query attention: with full context, a sliding window, or chunks (local attention, a row sees its
// own chunk only). Cache row = kv_heads * (head_dim + value_dim).
struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t window = 0;       // tokens; 0 = none. At most one of window and chunk is set
  std::int64_t chunk = 0;        // tokens; 0 = none
  bool sinks = false;            // each head has a learned logit beside its scores; it takes no cache
  std::int64_t sink_tokens = 0;  // learned rows in front of the context, which every sequence keeps
  bool output_gate = false;
  // The earlier layer whose cache this one reads; it keeps none itself then.
  std::optional<std::int32_t> shares_with = std::nullopt;
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
  bool full_rank_gate = false;    // the output gate is projected directly, not over head_dim lanes
  double gate_lower_bound = 0.0;  // negative: of the log-decay, which is then bounded; 0: it is not
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

// The word for each kind, in the variant's order: in canonical text, in JSON, in messages.
inline constexpr std::array<std::string_view, std::variant_size_v<MixerShape>> kMixerKinds = {
    "attention",    "mla",        "kda",     "mamba2",     "gated_delta",     "mamba1",
    "lightning",    "short_conv", "indexer", "compressor", "cross_attention", "encoder_attention",
    "hidden_state", "none"};

[[nodiscard]] inline std::string_view MixerKind(const MixerShape& mixer) {
  return kMixerKinds[mixer.index()];
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MIXER_SHAPES_H_
