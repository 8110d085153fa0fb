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

// Grouped-query attention with full context, or a sliding window.
struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t window = 0;  // tokens; 0 = full
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// Multi-head latent attention: cache row = kv_lora_rank + rope_dim.
struct MlaShape {
  std::int64_t heads = 0;
  std::int64_t q_lora_rank = 0;  // 0: queries are projected directly
  std::int64_t kv_lora_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
  bool rotate = true;        // false: NoPE; the rope lanes stay in the row, unrotated
  bool output_gate = false;  // a sigmoid gate on the heads' output before the output projection
  friend bool operator==(const MlaShape&, const MlaShape&) = default;
};

// Kimi Delta Attention: per head a [head_dim, head_dim] fp32 state and a short convolution over q, k, v.
struct KdaShape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t conv_kernel = 0;
  friend bool operator==(const KdaShape&, const KdaShape&) = default;
};

// Mamba-2: per head a [head_dim, state_dim] state and a short convolution.
struct Mamba2Shape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t state_dim = 0;
  std::int64_t groups = 0;
  std::int64_t conv_kernel = 0;
  DType state_dtype = DType::kF32;  // of the [head_dim, state_dim] states; the convolution's has the model's
  friend bool operator==(const Mamba2Shape&, const Mamba2Shape&) = default;
};

using MixerShape = std::variant<AttentionShape, MlaShape, KdaShape, Mamba2Shape>;

struct MlpShape {
  std::int64_t intermediate = 0;  // of the dense MLP; 0 where the layer is a mixture of experts
  std::int64_t experts = 0;       // routed; 0 for a dense MLP
  std::int64_t experts_per_token = 0;
  std::int64_t shared_experts = 0;
  std::int64_t expert_intermediate = 0;
  friend bool operator==(const MlpShape&, const MlpShape&) = default;
};

struct ModelLayer {
  std::int32_t index = 0;  // 0-based
  MixerShape mixer;
  MlpShape mlp;
  friend bool operator==(const ModelLayer&, const ModelLayer&) = default;
};

// Rotary embedding; factor 1 means plain RoPE, else YaRN.
struct Rope {
  double theta = 10000.0;
  double factor = 1.0;
  std::int64_t original_context = 0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double mscale = 1.0;
  double mscale_all_dim = 0.0;
  friend bool operator==(const Rope&, const Rope&) = default;
};

enum class DraftMethod : std::int8_t { kDspark };

// What makes a model a draft of another.
struct DraftShape {
  DraftMethod method = DraftMethod::kDspark;
  bool causal = false;                    // inside the drafted block
  std::vector<std::int64_t> target_taps;  // target layers whose outputs feed the draft, ascending
  std::int64_t target_hidden = 0;
  std::int64_t target_layers = 0;  // of the target it was trained for
  std::int64_t mask_token = 0;
  std::int64_t markov_rank = 0;  // 0: no Markov head
  bool confidence_head = false;
  bool own_embedding = false;  // ships its own table; else the target's is used
  bool own_head = false;
  friend bool operator==(const DraftShape&, const DraftShape&) = default;
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
  friend bool operator==(const ModelDescription&, const ModelDescription&) = default;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MODEL_DESCRIPTION_H_
