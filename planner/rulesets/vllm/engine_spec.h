// One layer's cache as the engine vLLM describes it: the spec kinds, their fields and the sizes that follow.
// Our own plans use LayoutKey, BehaviourKey and LifetimeKey (common/plan/keys.h) instead; this type exists
// only so that the engine's decisions can be predicted, and it mixes the three questions because the engine
// does.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_ENGINE_SPEC_H_
#define KVASIR_PLANNER_RULESETS_VLLM_ENGINE_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/rulesets/vllm/engine_failure.h"

namespace kvasir::vllm {

// k2026_08: vllm-project main of 2026-08-20 ("A" in the case files). k2026_11: the main lineage of October
// and November 2026 ("B").
enum class EngineVersion : std::int8_t { k2026_08, k2026_11 };

// "vllm-2026-08", "vllm-2026-11": the names of the rulesets.
[[nodiscard]] std::string_view EngineVersionName(EngineVersion version);
[[nodiscard]] std::optional<EngineVersion> ParseEngineVersion(std::string_view name);

// The engine's spec classes. kHiddenState is a kMla, and kMla, kRswa, kSinkFull are kFull, in its class
// hierarchy; kSlidingMla and kKpoolTail are kSliding.
enum class SpecKind : std::int8_t {
  kFull,
  kMla,
  kHiddenState,
  kRswa,
  kSinkFull,
  kSliding,
  kSlidingMla,
  kChunkedLocal,
  kMamba,
  kCross,
  kEncoderOnly,     // in no version registered: planning rejects it
  kCircularBuffer,  // since 2026-11
  kKpoolTail,       // since 2026-11
};

// The word of the case files ("full") and the engine's class ("FullAttentionSpec").
[[nodiscard]] std::string_view SpecKindWord(SpecKind kind);
[[nodiscard]] std::string_view SpecClassName(SpecKind kind);
[[nodiscard]] std::optional<SpecKind> ParseSpecKind(std::string_view word);  // either
[[nodiscard]] constexpr bool ExistsIn(EngineVersion version, SpecKind kind) {
  return version != EngineVersion::k2026_08 ||
         (kind != SpecKind::kCircularBuffer && kind != SpecKind::kKpoolTail);
}

// isinstance(spec, X) of the engine.
[[nodiscard]] constexpr bool IsMlaKind(SpecKind kind) {
  return kind == SpecKind::kMla || kind == SpecKind::kHiddenState;
}
[[nodiscard]] constexpr bool IsFullKind(SpecKind kind) {
  return IsMlaKind(kind) || kind == SpecKind::kFull || kind == SpecKind::kRswa || kind == SpecKind::kSinkFull;
}
[[nodiscard]] constexpr bool IsSlidingKind(SpecKind kind) {
  return kind == SpecKind::kSliding || kind == SpecKind::kSlidingMla || kind == SpecKind::kKpoolTail;
}
[[nodiscard]] constexpr bool IsAttentionKind(SpecKind kind) { return kind != SpecKind::kMamba; }

// Element types by their torch names.
enum class ElementType : std::int8_t {
  kBfloat16,
  kFloat16,
  kFloat32,
  kFloat64,
  kFloat8E4m3fn,
  kFloat8E4m3fnuz,
  kFloat8E5m2,
  kFloat8E5m2fnuz,
  kInt8,
  kUint8,
  kInt16,
  kInt32,
  kInt64,
};
[[nodiscard]] std::string_view ElementTypeName(ElementType type);
[[nodiscard]] std::optional<ElementType> ParseElementType(std::string_view name);
[[nodiscard]] std::int64_t ElementBytes(ElementType type);

// The engine's KVQuantMode. Page sizes never depend on it: a backend that packs publishes
// state_content_bytes.
enum class QuantMode : std::int8_t {
  kNone,
  kFp8PerTensor,
  kInt8PerTokenHead,
  kFp8PerTokenHead,
  kInt4PerTokenHead,
  kNvfp4,
  kTurboquantK8v4,
  kTurboquant4bitNc,
  kTurboquantK3v4Nc,
  kTurboquant3bitNc,
  kNvfp4DsMla,
};
[[nodiscard]] std::string_view QuantModeName(QuantMode mode);  // "FP8_PER_TENSOR"
[[nodiscard]] std::optional<QuantMode> ParseQuantMode(std::string_view name);

enum class CacheRole : std::int8_t { kSparse, kIndexer };
enum class MambaCacheMode : std::int8_t { kNone, kAlign, kAll };
[[nodiscard]] std::string_view MambaCacheModeName(MambaCacheMode mode);  // "align"
[[nodiscard]] std::optional<MambaCacheMode> ParseMambaCacheMode(std::string_view name);

// Tokens that one stored state covers, as a fraction in lowest terms: 4/1 compresses, 1/2 stores two states a
// token.
struct TokensPerState {
  std::int64_t tokens = 1;
  std::int64_t states = 1;
  friend bool operator==(const TokensPerState&, const TokensPerState&) = default;
};

// Every field of every kind; those that a kind does not have keep their defaults, so that equality is the
// engine's. Sizes are bytes of one worker. 2026-08's compress_ratio is `tokens_per_state`, which only kMla
// and kSlidingMla have there. In 2026-08 `dcp_sharded` is true for every attention kind: that version shards
// whatever it can.
struct EngineSpec {
  SpecKind kind = SpecKind::kFull;
  std::int64_t block_size = 16;                             // tokens
  bool dcp_sharded = true;                                  // 2026-11
  std::optional<std::int64_t> block_stride_alignment = {};  // 2026-11; bytes

  // Attention kinds.
  std::int64_t num_kv_heads = 0;
  std::int64_t head_size = 0;    // elements
  std::int64_t head_size_v = 0;  // elements; the latent kinds have no separate value: 0
  ElementType dtype = ElementType::kBfloat16;
  QuantMode kv_quant_mode = QuantMode::kNone;
  std::optional<std::int64_t> page_size_padded = {};  // bytes; also kMamba
  bool indexes_kv_by_block_stride = false;            // 2026-08
  std::optional<std::int64_t> num_head_slots = {};
  std::optional<std::int64_t> state_content_bytes = {};  // of one head slot and state
  TokensPerState tokens_per_state = {};

  // Full and sliding kinds.
  std::optional<std::int64_t> sliding_window = {};        // tokens; kFull: recorded by promotion
  std::optional<std::int64_t> attention_chunk_size = {};  // tokens; also kChunkedLocal
  bool non_causal = false;
  std::int64_t extra_retained_tokens = 0;     // sliding kinds
  std::int64_t rswa_window = 0;               // kRswa; tokens
  std::optional<std::int64_t> sink_len = {};  // kSinkFull; tokens

  // Latent kinds.
  std::optional<std::string> cache_dtype_str = {};
  std::optional<std::int64_t> alignment = {};  // bytes
  std::optional<std::string> model_version = {};
  bool non_causal_multi_token_decode = false;
  CacheRole cache_role = CacheRole::kSparse;            // 2026-11
  bool is_index_group_leader = false;                   // 2026-11
  std::optional<std::int64_t> storage_block_size = {};  // 2026-11
  bool bounded_replay = false;                          // 2026-11; kSlidingMla

  // kMamba.
  std::vector<std::vector<std::int64_t>> shapes = {};  // elements of each state tensor
  std::vector<ElementType> dtypes = {};
  std::string mamba_type = {};  // "mamba2"
  MambaCacheMode mamba_cache_mode = MambaCacheMode::kNone;
  std::int64_t num_speculative_blocks = 0;
  std::int64_t num_prefill_checkpoint_blocks = 0;                 // 2026-11
  std::optional<std::int64_t> prefill_checkpoint_alignment = {};  // 2026-11
  bool tp_replicated = false;                                     // 2026-11

  friend bool operator==(const EngineSpec&, const EngineSpec&) = default;
};

inline constexpr std::int64_t kBlockTokensLimit = std::int64_t{1} << 40;

// A spec of `kind` with that kind's defaults: dcp_sharded false for kMamba, mamba_type "mamba2".
[[nodiscard]] EngineSpec MakeSpec(SpecKind kind);

// What the engine's constructor makes of the fields: those that the version lacks return to their defaults,
// and `alignment` re-pads the page. Stage input: ValueError (block_stride_alignment <= 0), AssertionError (a
// sliding latent's model_version), kNotInVersion, kTooLarge.
[[nodiscard]] EngineResult<EngineSpec> Constructed(EngineVersion version, EngineSpec spec);

// The page as [head slot, state, content]: its cells and the bytes of one. kMamba: one cell with all its
// states.
[[nodiscard]] std::int64_t HeadSlots(const EngineSpec& spec);
[[nodiscard]] std::int64_t StatesPerBlock(const EngineSpec& spec);
[[nodiscard]] EngineResult<std::int64_t> StateContentBytes(const EngineSpec& spec);

// Bytes of one page without and with padding. AssertionError where page_size_padded is below the unpadded
// page; kTooLarge beyond 2^62.
[[nodiscard]] EngineResult<std::int64_t> UnpaddedPageBytes(const EngineSpec& spec);
[[nodiscard]] EngineResult<std::int64_t> PageBytes(const EngineSpec& spec);

// The engine's `replace`: the changed copy goes through the constructor again, so that an aligned page
// re-pads.
[[nodiscard]] EngineResult<EngineSpec> WithBlockSize(EngineVersion version, EngineSpec spec,
                                                     std::int64_t tokens);
[[nodiscard]] EngineResult<EngineSpec> WithPaddedPage(EngineVersion version, EngineSpec spec,
                                                      std::int64_t bytes);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_ENGINE_SPEC_H_
