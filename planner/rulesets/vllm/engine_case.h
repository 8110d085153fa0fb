// What the engine's planner is given: layers in registration order, workers, and the options that it reads.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_ENGINE_CASE_H_
#define KVASIR_PLANNER_RULESETS_VLLM_ENGINE_CASE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir::vllm {

inline constexpr std::int64_t kEngineLayersMax = 4096;
inline constexpr std::int64_t kEngineWorkersMax = 1024;

// The order of a cache tensor's dimensions: L layer, B block, H head, N state, C content. 2026-11 only.
enum class KvLayout : std::int8_t { kLBHNC, kLBNHC, kLHBNC, kBLHNC, kBLNHC, kBHLNC };
[[nodiscard]] std::string_view KvLayoutName(KvLayout layout);  // "LBNHC"
[[nodiscard]] std::optional<KvLayout> ParseKvLayout(std::string_view name);

// A block holds all layers' pages; each page is one run of bytes; each layer's blocks lie together.
[[nodiscard]] constexpr bool IsBlockOutermost(KvLayout layout) {
  return layout == KvLayout::kBLHNC || layout == KvLayout::kBLNHC || layout == KvLayout::kBHLNC;
}
[[nodiscard]] constexpr bool IsPageContiguous(KvLayout layout) {
  return layout != KvLayout::kLHBNC && layout != KvLayout::kBHLNC;
}
[[nodiscard]] constexpr bool IsLayerContiguous(KvLayout layout) { return !IsBlockOutermost(layout); }

struct EngineSpeculative {
  std::string method = {};  // "eagle", "eagle3", "mtp", "dflash", "dspark"; any other word is not eagle-like
  std::int64_t num_speculative_tokens = 0;
  std::int64_t num_nextn_predict_layers = 1;
  bool disable_eagle_block_drop = false;  // 2026-11
};

// Defaults are the engine's.
struct EngineConfig {
  std::int64_t block_size = 16;    // tokens
  std::int64_t max_model_len = 0;  // tokens
  bool auto_fit = false;  // original_max_model_len was -1: lower max_model_len until one request fits
  std::int64_t max_num_batched_tokens = 8192;
  std::int64_t max_concurrent_batches = 1;
  std::int64_t max_num_encoder_input_tokens = 0;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dcp = 1;
  std::int64_t pcp = 1;
  std::optional<std::int64_t> num_gpu_blocks_override = {};
  bool enable_prefix_caching = true;
  MambaCacheMode mamba_cache_mode = MambaCacheMode::kNone;
  std::optional<std::int64_t> prefix_match_unit = {};  // tokens
  bool disable_hybrid_kv_cache_manager = false;
  bool kv_connector = false;        // a KV connector is configured
  bool cross_layer_blocks = false;  // its enable_cross_layers_blocks; 2026-08
  std::optional<EngineSpeculative> speculative = {};
  // 2026-11; nullopt: num_speculative_tokens where mtp runs several modules, else 0.
  std::optional<std::int64_t> num_prefill_lookahead_tokens = {};
  KvLayout kv_cache_layout = KvLayout::kLBNHC;               // 2026-11
  std::string model_type = {};                               // 2026-11
  std::optional<std::int64_t> total_num_hidden_layers = {};  // 2026-11
};

struct EngineLayer {
  std::string name = {};  // unique in the case
  std::int32_t spec = 0;  // index of EngineCase::specs
};

// A layer whose spec differs on one worker.
struct EngineOverride {
  std::int32_t layer = 0;  // index of EngineCase::layers
  std::int32_t spec = 0;   // index of EngineCase::specs
};

struct EngineWorker {
  std::int64_t available_bytes = 0;  // for the cache; may be 0 or negative, as profiling can find
  std::optional<std::vector<std::int32_t>> layers =
      {};  // indices of EngineCase::layers; nullopt: all, in order
  std::vector<EngineOverride> overrides = {};
};

// Specs need not be distinct, nor constructed (engine_spec.h): planning does both for its version.
struct EngineCase {
  std::vector<EngineSpec> specs = {};
  std::vector<EngineLayer> layers = {};    // registration order, which the engine's result depends on
  std::vector<EngineWorker> workers = {};  // at least one
  EngineConfig config = {};
};

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_ENGINE_CASE_H_
