// One cache of one layer as a model or a client describes it: sizes of the whole model, before parallelism.
#ifndef KVASIR_PLANNER_REQUEST_CACHE_LAYER_H_
#define KVASIR_PLANNER_REQUEST_CACHE_LAYER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/models/model_description.h"
#include "common/plan/keys.h"
#include "planner/core/plan_request.h"
#include "planner/core/refusal.h"

namespace kvasir {

// Grouped-query attention; a token's row is kv_heads * (key_dim + value_dim) elements.
struct KeyValueCache {
  std::int64_t heads = 0;  // query heads
  std::int64_t kv_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t window = 0;  // tokens a row sees back; 0 = all
};

// Multi-head latent attention; a token's row is latent_dim + rope_dim elements, whatever the heads.
struct LatentCache {
  std::int64_t heads = 0;  // query heads
  std::int64_t latent_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t window = 0;
};

// A recurrent state; every tensor is divided by tensor parallelism along its heads.
struct StateCache {
  std::int64_t heads = 0;
  std::vector<StateTensor> states;  // one committed state, all heads
  std::vector<StateTensor> ring;    // per token of a drafted block, all heads
};

struct CacheLayer {
  LayerId id;
  std::string name;   // unique over target and draft: "target.layers.3"
  std::string mixer;  // a word for group names: "mla"
  std::variant<KeyValueCache, LatentCache, StateCache> cache;
  std::optional<DType> dtype;  // of a per-token cache; nullopt: as the options say
  std::optional<bool>
      causal;           // of the multi-token pass; nullopt: causal for a target, the method's for a draft
  std::string backend;  // empty: as the options say
  std::optional<std::int64_t> registration_index;  // nullopt: its place in the request
};

// One model, as far as planning goes.
struct ModelInput {
  ModelRef ref;
  DType dtype = DType::kBf16;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t layers_total = 0;
  std::int64_t context_tokens = 0;
  std::vector<CacheLayer> layers;
  std::optional<DraftFacts> draft;  // set for a draft
  bool draft_causal = false;        // inside its block
  bool draft_anchor_row = false;    // its block has a row more than it drafts (DraftShape)
  std::vector<Refusal> refusals;  // of caches that no plan of ours can hold; their layers are not in `layers`
};

// How a recurrent state grows with drafting: `draft_tokens` more rows in the convolution's window. `tp`
// enters Mamba-2 only, whose groups are repeated until each rank has one.
struct StateScale {
  std::int64_t draft_tokens = 0;
  std::int64_t tp = 1;
};

// The caches of a model's layers: `<role>.layers.<i>`, further caches of the layer `<role>.layers.<i>.<n>`.
// Layers that keep nothing, or read another layer's cache, have none. Chunked attention counts as a window of
// a chunk. Keys of an indexer are latent rows without a rotary part: one fp8 key and its scales, or a key in
// the model's dtype.
//
// What the row and state forms of common/plan/keys.h cannot say is refused by name: compressed caches (one
// row for several tokens) and what goes with them, cross attention (rows of the encoder's length), sink rows.
//
// Shapes of recurrent states (vLLM's model_executor/layers/mamba/mamba_utils.py; N = draft_tokens):
//   KDA        conv (kernel - 1 + N) x 3 * heads * head_dim in the model's dtype; recurrent heads x
//   head_dim^2 f32;
//              ring per token: decay heads x head_dim f32, keys and updates heads x 2 * head_dim, model's
//              dtype
//   gated      conv (kernel - 1 + N) x (2 * key_heads * key_dim + value_heads * value_dim); recurrent
//   value_heads x delta      value_dim x key_dim; ring: decay value_heads f32, keys and updates Mamba-2 conv
//   (kernel - 1 [+ N where the model's code passes it]) x (heads * head_dim + 2 * G * state_dim), G =
//              groups, or tp where tp does not divide them; recurrent heads x head_dim x state_dim; ring:
//              inputs, B rows and time steps
//   Mamba-1    conv (kernel - 1) x inner; recurrent inner x state_dim; ring: inputs, B rows and time steps
//   lightning  recurrent heads x head_dim^2; ring: keys and values
//   short conv conv (kernel - 1) x width; ring: inputs
[[nodiscard]] ModelInput InputOf(const ModelDescription& model, Role role, const StateScale& scale);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_CACHE_LAYER_H_
