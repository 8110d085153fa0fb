#include "planner/request/launch_flags.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>

#include "common/base/edit_distance.h"
#include "common/base/limits.h"

namespace kvasir {
namespace {

using O = LaunchOptions;
using F = ValueForm;

constexpr std::int64_t kBig = std::int64_t{1} << 40;
constexpr std::string_view kCacheDtypes =
    "auto float16 bfloat16 fp8 fp8_e4m3 fp8_e5m2 fp8_inc fp8_ds_mla nvfp4 nvfp4_4over6 nvfp4_ds_mla "
    "turboquant_k8v4 turboquant_4bit_nc turboquant_k3v4_nc turboquant_3bit_nc int4_per_token_head "
    "int8_per_token_head fp8_per_token_head";
constexpr std::string_view kDtypes = "auto half float16 bfloat16 float float32";
constexpr std::string_view kStateDtypes = "auto float32 float16 bfloat16";
constexpr std::string_view kGraphModes =
    "NONE PIECEWISE FULL FULL_DECODE_ONLY FULL_AND_PIECEWISE none piecewise full full_decode_only "
    "full_and_piecewise";

// name, short form, how it is written, field, least, largest, choices, the row that writes it.
constexpr std::array kCache = {
    FlagRow{"model", "", F::kText, &O::model},
    FlagRow{"hf-config-path", "", F::kText, &O::hf_config_path},
    FlagRow{"hf-overrides", "", F::kJson, &O::hf_overrides},
    FlagRow{"dtype", "", F::kText, &O::dtype, 0, 0, kDtypes},
    FlagRow{"quantization", "q", F::kText, &O::quantization},
    FlagRow{"max-model-len", "", F::kSizeOrAuto, &O::max_model_len, 1, kContextTokensMax},
    FlagRow{"disable-sliding-window", "", F::kSwitch, &O::disable_sliding_window},
    FlagRow{"language-model-only", "", F::kSwitch, &O::language_model_only},
    FlagRow{"enforce-eager", "", F::kSwitch, &O::enforce_eager},

    FlagRow{"tensor-parallel-size", "tp", F::kInt, &O::tensor_parallel, 1, kRanksMax},
    FlagRow{"pipeline-parallel-size", "pp", F::kInt, &O::pipeline_parallel, 1, kRanksMax},
    FlagRow{"data-parallel-size", "dp", F::kInt, &O::data_parallel, 1, kRanksMax},
    FlagRow{"decode-context-parallel-size", "dcp", F::kInt, &O::decode_context_parallel, 1, kRanksMax},
    FlagRow{"prefill-context-parallel-size", "pcp", F::kInt, &O::prefill_context_parallel, 1, kRanksMax},
    FlagRow{"dcp-kv-cache-interleave-size", "", F::kInt, &O::dcp_interleave, 1, kBlockTokensMax},
    FlagRow{"cp-kv-cache-interleave-size", "", F::kInt, &O::cp_interleave, 1, kBlockTokensMax},
    FlagRow{"enable-expert-parallel", "ep", F::kSwitch, &O::expert_parallel},
    FlagRow{"distributed-executor-backend", "", F::kText, &O::executor},

    FlagRow{"block-size", "", F::kInt, &O::block_size, 1, kContextTokensMax},
    FlagRow{"gpu-memory-utilization", "", F::kReal, &O::gpu_memory_utilization, 0, 1},
    FlagRow{"kv-cache-memory-bytes", "kv-cache-memory", F::kSize, &O::kv_cache_memory_bytes, 1,
            kArenaBytesMax},
    FlagRow{"kv-cache-dtype", "", F::kText, &O::kv_cache_dtype, 0, 0, kCacheDtypes},
    FlagRow{"kv-cache-dtype-skip-layers", "", F::kTexts, &O::kv_cache_dtype_skip_layers},
    FlagRow{"num-gpu-blocks-override", "", F::kInt, &O::num_gpu_blocks_override, 0, kBig},
    FlagRow{"enable-prefix-caching", "", F::kSwitch, &O::prefix_caching},
    FlagRow{"prefix-match-unit", "", F::kInt, &O::prefix_match_unit, 1, kContextTokensMax},
    FlagRow{"kv-sharing-fast-prefill", "", F::kSwitch, &O::kv_sharing_fast_prefill},
    FlagRow{"mamba-cache-mode", "", F::kText, &O::mamba_cache_mode, 0, 0, "none align all"},
    FlagRow{"mamba-cache-dtype", "", F::kText, &O::mamba_cache_dtype, 0, 0, kStateDtypes},
    FlagRow{"mamba-ssm-cache-dtype", "", F::kText, &O::mamba_ssm_cache_dtype, 0, 0, kStateDtypes},
    FlagRow{"mamba-block-size", "", F::kInt, &O::mamba_block_size, 1, kContextTokensMax},
    FlagRow{"use-replayssm", "", F::kSwitch, &O::replay_ssm},
    FlagRow{"replayssm-buffer-len", "", F::kInt, &O::replay_ssm_buffer, 1, kBlockTokensMax},
    FlagRow{"swap-space", "", F::kReal, &O::swap_space_gib, 0, 1 << 20},
    FlagRow{"cpu-offload-gb", "", F::kReal, &O::cpu_offload_gib, 0, 1 << 20},
    FlagRow{"kv-offloading-size", "", F::kReal, &O::kv_offloading_gib, 0, 1 << 20},
    FlagRow{"kv-offloading-backend", "", F::kText, &O::kv_offloading_backend, 0, 0, "native lmcache"},

    FlagRow{"max-num-batched-tokens", "", F::kSize, &O::max_num_batched_tokens, 1, kContextTokensMax},
    FlagRow{"max-num-seqs", "", F::kInt, &O::max_num_seqs, 1, 1 << 20},
    FlagRow{"enable-chunked-prefill", "", F::kSwitch, &O::chunked_prefill},
    FlagRow{"disable-hybrid-kv-cache-manager", "", F::kSwitch, &O::disable_hybrid_kv_cache_manager},
    FlagRow{"async-scheduling", "", F::kSwitch, &O::async_scheduling},
    FlagRow{"performance-mode", "", F::kText, &O::performance_mode, 0, 0,
            "balanced interactivity throughput"},

    FlagRow{"speculative-config", "sc", F::kSection},
    FlagRow{"speculative-config.method", "", F::kText, &O::spec_method},
    FlagRow{"speculative-config.model", "", F::kText, &O::spec_model},
    FlagRow{"speculative-config.num_speculative_tokens", "", F::kInt, &O::spec_tokens, 1, 1024},
    FlagRow{"speculative-config.draft_tensor_parallel_size", "", F::kInt, &O::spec_tensor_parallel, 1,
            kRanksMax},
    FlagRow{"speculative-config.max_model_len", "", F::kSize, &O::spec_max_model_len, 1, kContextTokensMax},
    FlagRow{"speculative-config.quantization", "", F::kText, &O::spec_quantization},
    FlagRow{"speculative-config.kv_cache_dtype", "", F::kText, &O::spec_kv_cache_dtype, 0, 0, kCacheDtypes},
    FlagRow{"speculative-config.attention_backend", "", F::kText, &O::spec_attention_backend},
    FlagRow{"speculative-config.parallel_drafting", "", F::kSwitch, &O::spec_parallel_drafting},
    FlagRow{"speculative-config.enable_adaptive_verification", "", F::kSwitch,
            &O::spec_adaptive_verification},
    FlagRow{"spec-method", "", F::kText, &O::spec_method, 0, 0, "", "speculative-config.method"},
    FlagRow{"spec-model", "speculative-model", F::kText, &O::spec_model, 0, 0, "",
            "speculative-config.model"},
    FlagRow{"spec-tokens", "num-speculative-tokens", F::kInt, &O::spec_tokens, 1, 1024, "",
            "speculative-config.num_speculative_tokens"},

    FlagRow{"attention-backend", "", F::kText, &O::attention_backend},
    FlagRow{"attention-config", "ac", F::kSection},
    FlagRow{"attention-config.backend", "", F::kText, &O::attention_backend, 0, 0, "", "attention-backend"},
    FlagRow{"attention-config.flash_attn_version", "", F::kInt, &O::flash_attn_version, 2, 4},
    FlagRow{"attention-config.indexer_kv_dtype", "", F::kText, &O::indexer_kv_dtype},
    FlagRow{"compilation-config", "cc", F::kSection},
    FlagRow{"compilation-config.cudagraph_mode", "", F::kText, &O::cudagraph_mode, 0, 0, kGraphModes},
    FlagRow{"cudagraph-capture-sizes", "cuda-graph-sizes", F::kInts, &O::cudagraph_capture_sizes, 1, 1 << 20},
    FlagRow{"compilation-config.cudagraph_capture_sizes", "", F::kInts, &O::cudagraph_capture_sizes, 1,
            1 << 20, "", "cudagraph-capture-sizes"},
    FlagRow{"max-cudagraph-capture-size", "", F::kInt, &O::max_cudagraph_capture_size, 0, 1 << 20},
    FlagRow{"compilation-config.max_cudagraph_capture_size", "", F::kInt, &O::max_cudagraph_capture_size, 0,
            1 << 20, "", "max-cudagraph-capture-size"},

    FlagRow{"kv-transfer-config", "", F::kSection},
    FlagRow{"kv-transfer-config.kv_connector", "", F::kText, &O::kv_connector},
    FlagRow{"kv-transfer-config.kv_role", "", F::kText, &O::kv_role, 0, 0, "kv_producer kv_consumer kv_both"},
    FlagRow{"kv-transfer-config.kv_connector_extra_config", "", F::kJson, &O::kv_connector_extra_config},

    FlagRow{"VLLM_ATTENTION_BACKEND", "", F::kText, &O::attention_backend, 0, 0, "", "attention-backend"},
    FlagRow{"VLLM_KV_CACHE_LAYOUT", "", F::kText, &O::kv_cache_layout, 0, 0, "NHD HND"},
    FlagRow{"VLLM_SSM_CONV_STATE_LAYOUT", "", F::kText, &O::conv_state_layout, 0, 0, "SD DS"},
    FlagRow{"VLLM_PP_LAYER_PARTITION", "", F::kInts, &O::pp_layer_partition, 0, kLayersMax},
    FlagRow{"VLLM_ALLOW_LONG_MAX_MODEL_LEN", "", F::kSwitch, &O::allow_long_model_len},
    FlagRow{"VLLM_MLA_DISABLE", "", F::kSwitch, &O::mla_disable},
    FlagRow{"VLLM_USE_V2_MODEL_RUNNER", "", F::kSwitch, &O::v2_model_runner},
    FlagRow{"PYTHONOPTIMIZE", "", F::kSwitch, &O::optimized_python},
};

constexpr std::size_t kSearchedMax = 64;  // characters of a word that are compared with the names
constexpr std::size_t kEditsMax = 4;
constexpr std::size_t kShortMax = 3;  // characters of a short form; longer aliases are older names

template <class Take>
void ForEachFlag(Take take) {
  for (const FlagRow& row : CacheFlags()) take(row, std::string_view());
  ForEachOtherFlag(take);
}

// Rows by their full names and older names, and by their short forms; the first of equal names counts.
struct FlagIndex {
  std::map<std::string, FlagRow, std::less<>> by_name;
  std::map<std::string, FlagRow, std::less<>> by_short;
};

const FlagIndex& Index() {
  static const FlagIndex kIndex = [] {
    FlagIndex index;
    ForEachFlag([&](const FlagRow& row, std::string_view prefix) {
      index.by_name.emplace(std::string(prefix) + std::string(row.name), row);
      if (row.alias.size() > kShortMax) index.by_name.emplace(row.alias, row);
      if (!row.alias.empty() && row.alias.size() <= kShortMax) index.by_short.emplace(row.alias, row);
    });
    return index;
  }();
  return kIndex;
}

std::optional<FlagRow> In(const std::map<std::string, FlagRow, std::less<>>& rows, std::string_view name) {
  const auto at = rows.find(name);
  return at == rows.end() ? std::nullopt : std::optional<FlagRow>(at->second);
}

bool IsFlagName(std::string_view name) {
  return name.find('.') == std::string_view::npos && name.front() >= 'a' && name.front() <= 'z';
}

}  // namespace

std::span<const FlagRow> CacheFlags() { return kCache; }

std::optional<FlagRow> FindFlag(std::string_view name) { return In(Index().by_name, name); }

std::optional<FlagRow> FindShortFlag(std::string_view alias) { return In(Index().by_short, alias); }

std::vector<FlagRow> FlagsThatBegin(std::string_view prefix) {
  std::vector<FlagRow> found;
  const auto& rows = Index().by_name;
  for (auto at = rows.lower_bound(prefix); at != rows.end(); ++at) {
    const auto& [name, row] = *at;
    if (name.substr(0, prefix.size()) != prefix) break;
    if (name == row.name && IsFlagName(name)) found.push_back(row);
  }
  return found;
}

std::string NearestFlag(std::string_view name) {
  const std::string_view word = name.substr(0, kSearchedMax);
  std::string nearest;
  std::size_t least = std::min(kEditsMax, word.size() / 2) + 1;
  ForEachFlag([&](const FlagRow& row, std::string_view prefix) {
    const std::size_t length = prefix.size() + row.name.size();
    const std::size_t apart = length > word.size() ? length - word.size() : word.size() - length;
    if (apart >= least) return;  // at least so many edits
    const std::string full = std::string(prefix) + std::string(row.name);
    const std::size_t edits = EditDistance(word, full);
    if (edits < least) {
      least = edits;
      nearest = full;
    }
  });
  return nearest;
}

}  // namespace kvasir
