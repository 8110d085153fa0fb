#include <algorithm>
#include <array>
#include <cstddef>

#include "planner/request/launch_flags.h"

namespace kvasir {
namespace {

using F = ValueForm;

// Names that share one form, with spaces between; a short form stands after a slash.
struct Words {
  ValueForm form;
  std::string_view prefix;  // of each name
  std::string_view names;
};

constexpr std::array kWords = {
    Words{F::kSwitch, "",
          "trust-remote-code allow-deprecated-quantization enable-return-routed-experts "
          "return-sampling-mask use-fp64-gumbel disable-cascade-attn skip-tokenizer-init "
          "enable-prompt-embeds enable-sleep-mode enable-cumem-allocator use-tqdm-on-load "
          "enable-mamba-cache-stochastic-rounding numa-bind data-parallel-hybrid-lb/dph "
          "data-parallel-external-lb/dpe data-parallel-multi-port-external-lb/dpm enable-ep-weight-filter "
          "enable-dbo enable-elastic-ep disable-nccl-for-dp-synchronization enable-eplb "
          "ray-workers-use-nsight disable-custom-all-reduce enable-fault-tolerance enable-mm-embeds "
          "mm-encoder-only interleave-mm-strings skip-mm-profiling mm-device-do-normalize enable-lora "
          "enable-tower-connector-lora fully-sharded-loras specialize-active-lora "
          "enable-mixed-moe-lora-format enable-moe-shared-loras kv-cache-metrics cudagraph-metrics "
          "enable-layerwise-nvtx-tracing enable-mfu-metrics enable-logging-iteration-details "
          "jit-monitor-verbose disable-chunked-mm-input scheduler-reserve-full-isl "
          "enable-flashinfer-autotune enable-bf16x3-router-gemm disable-log-stats "
          "aggregate-engine-logging fail-on-environ-validation enable-log-requests "
          "trust-request-chat-template return-tokens-as-token-ids enable-auto-tool-choice "
          "exclude-tools-when-tool-choice-none enable-prompt-tokens-details enable-per-request-metrics "
          "enable-server-load-tracking enable-force-include-usage enable-tokenizer-info-endpoint "
          "enable-log-outputs enable-log-deltas cohere-is-reasoning-model log-error-stack tokens-only "
          "disable-uvicorn-access-log allow-credentials enable-ssl-refresh enable-request-id-headers "
          "disable-fastapi-docs enable-offline-docs enable-flash-late-interaction headless "
          "disable-frontend-multiprocessing use-v2-block-manager disable-log-requests "
          "disable-async-output-proc enable-reasoning calculate-kv-scales multi-step-stream-outputs "
          "enable-prompt-adapter disable-mm-preprocessor-cache enable-multimodal-encoder-data-parallel"},
    Words{F::kInt, "",
          "seed max-logprobs renderer-num-workers safetensors-prefetch-num-threads "
          "mamba-cache-philox-rounds master-port nnodes/n node-rank/r distributed-timeout-seconds "
          "cpu-distributed-timeout-seconds data-parallel-rank/dpn data-parallel-start-rank/dpr "
          "data-parallel-size-local/dpl data-parallel-rpc-port/dpp ubatch-size dbo-decode-token-threshold "
          "dbo-prefill-token-threshold max-parallel-loading-workers prefix-cache-retention-interval "
          "offload-group-size offload-num-in-group offload-prefetch-step mm-shm-cache-max-object-size-mb "
          "max-loras max-cpu-loras long-prefill-token-threshold prefill-schedule-interval stream-interval "
          "shutdown-timeout port data-parallel-supervisor-port dp-supervisor-probe-failure-threshold "
          "max-log-len ssl-cert-reqs max-seq-len-to-capture num-lookahead-slots num-scheduler-steps "
          "tokenizer-pool-size max-num-partial-prefills max-long-partial-prefills max-prompt-adapters "
          "api-server-count/asc"},
    Words{F::kSize, "", "safetensors-prefetch-block-size max-num-scheduled-tokens"},
    Words{F::kReal, "",
          "mm-processor-cache-gb mm-encoder-fp8-scale-save-margin video-pruning-rate mm-ipc-gpu-memory-gb "
          "kv-cache-metrics-sample watermark dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s "
          "scheduler-delay-factor rope-theta"},
    Words{F::kText, "",
          "runner convert tokenizer tokenizer-mode allowed-local-media-path revision code-revision "
          "tokenizer-revision logprobs-mode config-format generation-config model-impl "
          "io-processor-plugin load-format download-dir safetensors-load-strategy pt-load-map-location "
          "mamba-backend mamba-ssu-algorithm reasoning-parser reasoning-parser-plugin master-addr "
          "dcp-comm-backend data-parallel-address/dpa data-parallel-backend/dpb all2all-backend "
          "expert-placement-strategy worker-cls worker-extension-cls prefix-caching-hash-algo "
          "offload-backend mm-processor-cache-type mm-hasher-algorithm mm-encoder-tp-mode "
          "mm-encoder-attn-backend mm-encoder-attn-dtype mm-encoder-fp8-scale-path "
          "mm-encoder-fp8-scale-save-path video-pruning-method mm-tensor-ipc mm-processor-device "
          "max-lora-rank lora-dtype show-hidden-metrics-for-version otlp-traces-endpoint jit-monitor-mode "
          "scheduling-policy scheduler-cls moe-backend linear-backend optimization-level "
          "gdn-prefill-backend kda-prefill-backend chat-template chat-template-content-format "
          "response-role tool-call-parser tool-parser-plugin tool-server log-config-file cohere-format "
          "fingerprint-mode fingerprint-value host uds uvicorn-log-level disable-access-log-for-endpoints "
          "ssl-keyfile ssl-certfile ssl-ca-certs ssl-ciphers root-path task device "
          "guided-decoding-backend tokenizer-pool-type preemption-mode override-neuron-config "
          "collect-detailed-traces-module task-type speculative-disable-by-batch-size "
          "typical-acceptance-sampler-posterior-threshold ngram-prompt-lookup-max ngram-prompt-lookup-min "
          "speculative-draft-tensor-parallel-size"},
    Words{F::kMaybeText, "", "hf-token"},
    Words{F::kTexts, "",
          "allowed-media-domains served-model-name logits-processors ignore-patterns numa-bind-nodes "
          "numa-bind-cpus device-ids cpu-offload-params offload-params lora-target-modules "
          "collect-detailed-traces lora-modules allowed-origins allowed-methods allowed-headers api-key "
          "middleware prompt-adapters"},
    Words{F::kJson, "",
          "quantization-config model-class-overrides pooler-config override-generation-config "
          "model-loader-extra-config eplb-config fault-tolerance-config limit-mm-per-prompt "
          "media-io-kwargs mm-processor-kwargs default-mm-loras ir-op-priority diffusion-config/dc "
          "kv-events-config ec-transfer-config ec-manager-config reasoning-config kernel-config "
          "additional-config structured-outputs-config profiler-config weight-transfer-config "
          "default-chat-template-kwargs rope-scaling"},
    // Keys of JSON-valued flags.
    Words{F::kJson, "speculative-config.",
          "enforce_eager tensor_parallel_size moe_backend revision code_revision "
          "disable_padded_drafter_batch use_local_argmax_reduction use_heterogeneous_vocab "
          "prompt_lookup_max prompt_lookup_min num_speculative_tokens_per_batch_size "
          "suffix_decoding_max_tree_depth suffix_decoding_max_cached_requests "
          "suffix_decoding_max_spec_factor suffix_decoding_min_token_prob draft_load_config "
          "rejection_sample_method synthetic_acceptance_rates synthetic_acceptance_length "
          "draft_sample_method dspark_draft_topk disable_by_batch_size disable_mqa_scorer"},
    Words{F::kJson, "attention-config.",
          "backend_per_kind use_prefill_decode_attention flash_attn_max_num_splits_for_cuda_graph "
          "tq_max_kv_splits_for_cuda_graph use_trtllm_attention disable_flashinfer_q_quantization "
          "mla_prefill_backend use_prefill_query_quantization use_non_causal sparse_mla_force_mqa "
          "flex_attn_block_m flex_attn_block_n flex_attn_q_block_size flex_attn_kv_block_size"},
    Words{F::kJson, "compilation-config.",
          "mode level debug_dump_path cache_dir compile_cache_save_format backend custom_ops "
          "ir_enable_torch_wrap splitting_ops compile_mm_encoder cudagraph_mm_encoder "
          "encoder_cudagraph_token_budgets encoder_cudagraph_max_vision_items_per_batch "
          "encoder_cudagraph_max_frames_per_batch compile_sizes compile_ranges_endpoints "
          "inductor_compile_config inductor_passes cudagraph_num_of_warmups cudagraph_copy_inputs "
          "cudagraph_specialize_lora use_inductor_graph_partition use_inductor full_cuda_graph "
          "pass_config dynamic_shapes_config fast_moe_cold_start"},
    Words{F::kJson, "kv-transfer-config.",
          "engine_id kv_buffer_device kv_buffer_size kv_rank kv_parallel_size kv_ip kv_port "
          "kv_connector_module_path enable_permute_local_kv kv_load_failure_policy"},
    // Environment variables.
    Words{F::kText, "",
          "VLLM_HOST_IP VLLM_PORT VLLM_RPC_BASE_PATH VLLM_USE_MODELSCOPE VLLM_ENGINE_ITERATION_TIMEOUT_S "
          "VLLM_ENGINE_READY_TIMEOUT_S VLLM_API_KEY VLLM_CACHE_ROOT VLLM_CONFIG_ROOT VLLM_NO_USAGE_STATS "
          "VLLM_DO_NOT_TRACK VLLM_USAGE_SOURCE VLLM_CONFIGURE_LOGGING VLLM_LOGGING_LEVEL "
          "VLLM_LOGGING_PREFIX VLLM_LOGGING_CONFIG_PATH VLLM_LOG_STATS_INTERVAL VLLM_TRACE_FUNCTION "
          "VLLM_USE_FLASHINFER_SAMPLER VLLM_CPU_OMP_THREADS_BIND VLLM_WORKER_MULTIPROC_METHOD "
          "VLLM_BATCH_INVARIANT VLLM_HTTP_TIMEOUT_KEEP_ALIVE VLLM_PLUGINS VLLM_USE_AOT_COMPILE "
          "VLLM_ALLOW_RUNTIME_LORA_UPDATING VLLM_SKIP_P2P_CHECK VLLM_DISABLED_KERNELS "
          "VLLM_GDN_DECODE_KERNEL VLLM_DISABLE_PYNCCL VLLM_ROCM_USE_AITER VLLM_ROCM_USE_AITER_MLA "
          "VLLM_ROCM_USE_AITER_MHA VLLM_ROCM_USE_AITER_MOE VLLM_ROCM_USE_AITER_LINEAR "
          "VLLM_ROCM_USE_AITER_RMSNORM VLLM_ROCM_USE_AITER_UNIFIED_ATTENTION "
          "VLLM_ROCM_USE_AITER_FP4_ASM_GEMM VLLM_ROCM_USE_AITER_TRITON_ROPE "
          "VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT VLLM_ROCM_QUICK_REDUCE_QUANTIZATION "
          "VLLM_ENABLE_V1_MULTIPROCESSING VLLM_DISABLE_COMPILE_CACHE VLLM_USE_RUST_FRONTEND "
          "VLLM_SERVER_DEV_MODE VLLM_RAY_PER_WORKER_GPUS VLLM_RAY_BUNDLE_INDICES VLLM_DP_RANK "
          "VLLM_DP_RANK_LOCAL VLLM_DP_SIZE VLLM_DP_MASTER_IP VLLM_DP_MASTER_PORT "
          "VLLM_RANDOMIZE_DP_DUMMY_INPUTS VLLM_MARLIN_USE_ATOMIC_ADD VLLM_USE_DEEP_GEMM "
          "VLLM_MOE_USE_DEEP_GEMM VLLM_USE_DEEP_GEMM_E8M0 VLLM_DEEP_GEMM_WARMUP VLLM_DCP_Q_REPLICATE "
          "VLLM_USE_DIRECT_DCP_A2A VLLM_USE_DIRECT_DCP_Q_GATHER VLLM_USE_DIRECT_DCP_KV_GATHER "
          "VLLM_USE_FUSED_MOE_GROUPED_TOPK VLLM_KIMI_K3_SHARD_SP_SHARED_EXPERT "
          "VLLM_KIMI_K3_AUX_ATTN_RES_STREAM VLLM_KIMI_K3_GEMM_RS VLLM_BLOCKSCALE_FP8_GEMM_FLASHINFER "
          "VLLM_USE_FLASHINFER_MOE_FP16 VLLM_USE_FLASHINFER_MOE_FP8 VLLM_USE_FLASHINFER_MOE_FP4 "
          "VLLM_USE_FLASHINFER_MOE_INT4 VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8 "
          "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16 VLLM_FLASHINFER_MOE_BACKEND "
          "VLLM_FLASHINFER_ALLREDUCE_BACKEND VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE "
          "VLLM_NIXL_SIDE_CHANNEL_HOST VLLM_NIXL_SIDE_CHANNEL_PORT VLLM_NIXL_ABORT_REQUEST_TIMEOUT "
          "VLLM_MOONCAKE_BOOTSTRAP_PORT VLLM_MQ_MAX_CHUNK_BYTES_MB VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS "
          "VLLM_RPC_TIMEOUT VLLM_ENABLE_CUDAGRAPH_GC VLLM_LOOPBACK_IP VLLM_ALLREDUCE_USE_SYMM_MEM "
          "VLLM_TUNED_CONFIG_FOLDER VLLM_USE_NCCL_SYMM_MEM VLLM_NCCL_SO_PATH "
          "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS VLLM_USE_V1 VLLM_USE_BREAKABLE_CUDAGRAPH "
          "VLLM_SPARSE_INDEXER_MAX_LOGITS_MB VLLM_ALL2ALL_BACKEND VLLM_FLASH_ATTN_VERSION "
          "VLLM_TORCH_PROFILER_DIR VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE VLLM_MXFP4_USE_MARLIN "
          "VLLM_USE_TRTLLM_ATTENTION VLLM_ASSETS_CACHE VLLM_IMAGE_FETCH_TIMEOUT VLLM_VIDEO_FETCH_TIMEOUT "
          "VLLM_AUDIO_FETCH_TIMEOUT VLLM_TARGET_DEVICE VLLM_ENABLE_RESPONSES_API_STORE "
          "VLLM_LOG_MODEL_INSPECTION VLLM_DEEPEP_BUFFER_SIZE_MB "
          "VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD"},
};

}  // namespace

void ForEachOtherFlag(const std::function<void(const FlagRow&, std::string_view prefix)>& take) {
  for (const Words& list : kWords) {
    std::string_view names = list.names;
    while (!names.empty()) {
      const std::size_t end = std::min(names.find(' '), names.size());
      const std::string_view word = names.substr(0, end);
      const std::size_t slash = std::min(word.find('/'), word.size());
      FlagRow row;
      row.name = word.substr(0, slash);
      row.alias = word.substr(std::min(slash + 1, word.size()));
      row.form = list.form;
      take(row, list.prefix);
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  }
}

}  // namespace kvasir
