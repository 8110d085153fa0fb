// The three questions that one "spec" object must never answer together (DESIGN section 1):
//   LayoutKey     which bytes a layer's cache is made of          -> which layers may share a pool
//   BehaviourKey  which metadata the layer needs at run time      -> which layers form a group; never merged
//   LifetimeKey   how the cache grows with a sequence             -> what a sequence costs
// All are plain values with a total order. Sizes are per rank, after tensor parallelism.
#ifndef KVASIR_COMMON_PLAN_KEYS_H_
#define KVASIR_COMMON_PLAN_KEYS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"
#include "common/geometry/dtype.h"

namespace kvasir {

enum class Role : std::int8_t { kTarget, kDraft };

// A layer of a model; `cache` counts the caches of one layer (0 unless it owns two).
struct LayerId {
  Role role = Role::kTarget;
  std::int32_t index = 0;
  std::int32_t cache = 0;
  friend auto operator<=>(const LayerId&, const LayerId&) = default;
};

// "target.3", or "target.3.1" for a second cache: how text names a layer.
[[nodiscard]] std::string LayerIdText(const LayerId& id);
// The inverse; nullopt for any other text.
[[nodiscard]] std::optional<LayerId> ParseLayerId(std::string_view text);

enum class LayoutKind : std::int8_t {
  kKeyValue,  // per token: keys [heads, key_dim], then values [heads, value_dim]
  kLatent,    // per token (MLA): latent [key_dim], then rotary key [value_dim]; heads is 1
  kState,     // per sequence: the tensors of `states`
};

// One tensor of a recurrent state, per rank. In a ring: per token of the drafted block.
struct StateTensor {
  std::string name;
  std::int64_t elements = 0;
  DType dtype = DType::kF32;
  friend auto operator<=>(const StateTensor&, const StateTensor&) = default;
};

struct LayoutKey {
  LayoutKind kind = LayoutKind::kKeyValue;
  bool sharded = false;  // over context: each DCP rank holds its own tokens; else every rank holds all
  DType dtype = DType::kBf16;
  std::int64_t heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t alignment_bytes = 16;  // of a page's first byte
  std::vector<StateTensor> states;    // kState only
  std::vector<StateTensor> ring;      // kState only: what replay keeps of each drafted token
  friend auto operator<=>(const LayoutKey&, const LayoutKey&) = default;
};

enum class Mixer : std::int8_t { kAttention, kRecurrent };

struct BehaviourKey {
  Role role = Role::kTarget;
  Mixer mixer = Mixer::kAttention;
  bool causal = true;       // of the multi-token pass: target verify, or the drafted block
  std::int64_t window = 0;  // tokens a row sees back; 0 = all
  std::int64_t block_rows =
      1;  // query rows of the multi-token pass: N+1 (verify), N (DSpark), N + 1 (DFlash), 1 (no draft)
  std::string backend;  // name in the backend table
  friend auto operator<=>(const BehaviourKey&, const BehaviourKey&) = default;
};

enum class LifetimeKind : std::int8_t {
  kPerToken,       // grows with every token
  kBoundedWindow,  // the last `window` tokens
  kPerSequence,    // `copies` states per sequence
};

struct LifetimeKey {
  LifetimeKind kind = LifetimeKind::kPerToken;
  std::int64_t window = 0;  // kBoundedWindow
  std::int64_t copies = 0;  // kPerSequence: 1 + snapshots
  friend auto operator<=>(const LifetimeKey&, const LifetimeKey&) = default;
};

// Bytes of one token's row; 0 for kState. Fields are bounded by common/base/limits.h, so this cannot
// overflow.
[[nodiscard]] std::int64_t RowBytes(const LayoutKey& layout);
// Bytes of one committed state, each tensor aligned to 16 bytes; 0 unless kState.
[[nodiscard]] std::int64_t StateBytes(const LayoutKey& layout);
// Where one of the tensors of `states`, or of the ring for a block of `tokens` rows, starts in the layer's
// page: the state's tensors one after the other, then the ring's.
[[nodiscard]] std::int64_t StateTensorOffset(const LayoutKey& layout, std::size_t index);
[[nodiscard]] std::int64_t RingTensorOffset(const LayoutKey& layout, std::size_t index, std::int64_t tokens);
// Bytes of the replay ring for a block of `tokens` rows; 0 unless kState.
[[nodiscard]] std::int64_t RingBytes(const LayoutKey& layout, std::int64_t tokens);

// Words used in canonical text, JSON and on the wire.
[[nodiscard]] std::string_view RoleName(Role role);              // target | draft
[[nodiscard]] std::string_view LayoutKindName(LayoutKind kind);  // key_value | latent | state
[[nodiscard]] std::string_view MixerName(Mixer mixer);           // attention | recurrent
[[nodiscard]] std::string_view LifetimeKindName(
    LifetimeKind kind);  // per_token | bounded_window | per_sequence

}  // namespace kvasir

#endif  // KVASIR_COMMON_PLAN_KEYS_H_
