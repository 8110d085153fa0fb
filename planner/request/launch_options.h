// What a launch command of the engine says, as far as it decides the cache. One member a fact; a member
// without a value was not said, and the engine's default holds (engine_defaults.h), which depends on the
// device and on the release. launch_flags.h has the table that fills these.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_OPTIONS_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvasir {

using OptionalInt = std::optional<std::int64_t>;
using OptionalBool = std::optional<bool>;
using OptionalReal = std::optional<double>;
using OptionalText = std::optional<std::string>;
using OptionalTexts = std::optional<std::vector<std::string>>;
using OptionalInts = std::optional<std::vector<std::int64_t>>;

inline constexpr std::int64_t kFitMaxModelLen = -1;  // --max-model-len auto: the longest that fits

struct LaunchOptions {
  // The model.
  OptionalText model;           // a hub name or a folder
  OptionalText hf_config_path;  // where config.json lies, if not beside the weights
  OptionalText hf_overrides;    // a JSON object that is laid over config.json
  OptionalText dtype;           // of weights and activations
  OptionalText quantization;
  OptionalInt max_model_len;  // tokens, or kFitMaxModelLen
  OptionalBool disable_sliding_window;
  OptionalBool language_model_only;  // no vision encoder: less weights
  OptionalBool enforce_eager;

  // Parallelism.
  OptionalInt tensor_parallel;
  OptionalInt pipeline_parallel;
  OptionalInt data_parallel;
  OptionalInt decode_context_parallel;
  OptionalInt prefill_context_parallel;
  OptionalInt dcp_interleave;  // tokens; --dcp-kv-cache-interleave-size
  OptionalInt cp_interleave;   // tokens; --cp-kv-cache-interleave-size, the newer name
  OptionalBool expert_parallel;
  OptionalText executor;

  // The cache.
  OptionalInt block_size;  // tokens
  OptionalReal gpu_memory_utilization;
  OptionalInt kv_cache_memory_bytes;  // per device; rules out the utilization
  OptionalText kv_cache_dtype;
  OptionalTexts kv_cache_dtype_skip_layers;
  OptionalInt num_gpu_blocks_override;
  OptionalBool prefix_caching;
  OptionalInt prefix_match_unit;  // tokens
  OptionalBool kv_sharing_fast_prefill;
  OptionalText mamba_cache_mode;  // none, align, all
  OptionalText mamba_cache_dtype;
  OptionalText mamba_ssm_cache_dtype;
  OptionalInt mamba_block_size;  // tokens
  OptionalBool replay_ssm;
  OptionalInt replay_ssm_buffer;  // tokens
  OptionalReal swap_space_gib;
  OptionalReal cpu_offload_gib;
  OptionalReal kv_offloading_gib;
  OptionalText kv_offloading_backend;

  // The scheduler.
  OptionalInt max_num_batched_tokens;
  OptionalInt max_num_seqs;
  OptionalBool chunked_prefill;
  OptionalBool disable_hybrid_kv_cache_manager;
  OptionalBool async_scheduling;
  OptionalText performance_mode;

  // Drafting.
  OptionalText spec_method;
  OptionalText spec_model;
  OptionalInt spec_tokens;
  OptionalInt spec_tensor_parallel;
  OptionalInt spec_max_model_len;
  OptionalText spec_quantization;
  OptionalText spec_kv_cache_dtype;
  OptionalText spec_attention_backend;
  OptionalBool spec_parallel_drafting;
  OptionalBool spec_adaptive_verification;

  // Kernels and graphs.
  OptionalText attention_backend;
  OptionalInt flash_attn_version;
  OptionalText indexer_kv_dtype;
  OptionalText cudagraph_mode;
  OptionalInts cudagraph_capture_sizes;
  OptionalInt max_cudagraph_capture_size;

  // Connectors: they ask for layouts and for scheduler granularity.
  OptionalText kv_connector;
  OptionalText kv_role;
  OptionalText kv_connector_extra_config;  // a JSON object

  // Environment variables.
  OptionalText kv_cache_layout;       // VLLM_KV_CACHE_LAYOUT: NHD, HND
  OptionalText conv_state_layout;     // VLLM_SSM_CONV_STATE_LAYOUT: SD, DS
  OptionalInts pp_layer_partition;    // VLLM_PP_LAYER_PARTITION: layers of each stage
  OptionalBool allow_long_model_len;  // VLLM_ALLOW_LONG_MAX_MODEL_LEN
  OptionalBool mla_disable;           // VLLM_MLA_DISABLE: latent attention as plain attention
  OptionalBool v2_model_runner;       // VLLM_USE_V2_MODEL_RUNNER
  OptionalBool optimized_python;      // python -O or PYTHONOPTIMIZE: the engine's assertions are gone

  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_OPTIONS_H_
