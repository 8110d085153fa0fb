// One cache of one layer as the engine's spec: sizes of one rank, by the mixer's shape (models.md of the
// reference material, sections 4 and 5; vLLM's get_kv_cache_spec of each layer class).
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_LAYER_SPECS_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_LAYER_SPECS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/geometry/dtype.h"
#include "common/models/model_description.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir {

// What holds for every layer of one model in one launch.
struct LayerSetting {
  std::int64_t tp = 1;
  std::string cache_dtype = "bfloat16";  // the engine's word for per-token caches
  vllm::ElementType model_dtype = vllm::ElementType::kBfloat16;
  std::int64_t block = 16;                      // tokens
  std::int64_t window_block = 16;               // of layers with a window; tokens
  std::int64_t state_block = 0;                 // the engine's mamba_block_size; tokens
  std::optional<std::int64_t> state_page = {};  // bytes, padded
  vllm::MambaCacheMode mode = vllm::MambaCacheMode::kNone;
  std::int64_t spec_tokens = 0;
  bool recover = false;            // RecoverSSM: one checkpoint and a record of the drafted tokens (KDA)
  std::int64_t replay_buffer = 0;  // ReplaySSM's history of Mamba-2; tokens, 0: none
  std::optional<vllm::ElementType> conv_dtype = {};   // --mamba-cache-dtype
  std::optional<vllm::ElementType> state_dtype = {};  // --mamba-ssm-cache-dtype
  bool state_dim_first = false;                       // VLLM_SSM_CONV_STATE_LAYOUT=DS
  bool non_causal = false;                            // rows of a drafted block do not hide later ones
  bool windows_as_full = false;                       // --disable-sliding-window
  bool deepseek_v4 = false;                           // compressed rows share pages with windows
  std::string indexer_dtype;  // --attention-config.indexer_kv_dtype; empty: the model's way
};

// The engine's element type of a word of --kv-cache-dtype or --dtype ("fp8" is uint8); nullopt for "auto" and
// for words that it does not know.
[[nodiscard]] std::optional<vllm::ElementType> ElementOfWord(const std::string& word);
[[nodiscard]] vllm::ElementType ElementOf(DType dtype);

// nullopt where the layer keeps nothing, or reads another layer's cache. Requires tp >= 1.
[[nodiscard]] std::optional<vllm::EngineSpec> LayerSpecOf(const MixerShape& mixer,
                                                          const LayerSetting& setting);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_LAYER_SPECS_H_
