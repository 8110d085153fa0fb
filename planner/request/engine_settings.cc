#include "planner/request/engine_settings.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/request/backends.h"
#include "planner/request/engine_backend_choice.h"
#include "planner/request/engine_backends.h"
#include "planner/request/engine_drafting.h"
#include "planner/request/engine_graphs.h"
#include "planner/request/engine_length.h"
#include "planner/request/engine_parallelism.h"

namespace kvasir {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
// Tokens: the only blocks of DeepSeek-V4's kernels, and of an indexer's on NVIDIA's devices.
constexpr std::int64_t kCompressedBlock = 256;
constexpr std::int64_t kIndexerBlock = 64;

template <class Test>
bool AnyMixer(const ModelDescription& model, Test test) {
  for (const ModelLayer& layer : model.layers) {
    if (test(layer.mixer)) return true;
    for (const MixerShape& extra : layer.extra) {
      if (test(extra)) return true;
    }
  }
  return false;
}

template <class... Shapes>
bool IsOneOf(const MixerShape& mixer) {
  return (std::holds_alternative<Shapes>(mixer) || ...);
}

void SetParallelism(const EngineLaunch& launch, EngineSettings& settings) {
  const LaunchOptions& said = launch.options;
  settings.tp = said.tensor_parallel.value_or(1);
  settings.pp = said.pipeline_parallel.value_or(1);
  settings.dcp = said.decode_context_parallel.value_or(1);
  settings.pcp = said.prefill_context_parallel.value_or(1);
}

// The device's numbers: 160 GiB and more, 70 GiB and more except A100, the rest.
void SetBatch(const EngineLaunch& launch, EngineSettings& settings) {
  const LaunchOptions& said = launch.options;
  std::int64_t tokens = 8192;
  std::int64_t seqs = 1024;
  if (launch.device.has_value()) {
    const std::int64_t bytes = launch.device->bytes_least;
    const bool a100 = launch.device->name.substr(0, 4) == "a100";
    if (bytes >= 160 * kGiB) {
      tokens = 16384;
    } else if (bytes < 70 * kGiB || a100) {
      tokens = 2048;
      seqs = 256;
    }
  }
  const bool doubled = said.performance_mode == "throughput";
  settings.max_num_seqs = said.max_num_seqs.value_or(doubled ? 2 * seqs : seqs);
  if (said.max_num_batched_tokens.has_value()) {
    settings.max_num_batched_tokens = *said.max_num_batched_tokens;
    if (!said.max_num_seqs.has_value()) {
      settings.max_num_seqs = std::min(settings.max_num_seqs, settings.max_num_batched_tokens);
    }
    return;
  }
  settings.max_num_batched_tokens = doubled ? 2 * tokens : tokens;
  if (said.chunked_prefill == false) {
    settings.max_num_batched_tokens = std::max(settings.max_num_batched_tokens, settings.max_model_len);
  }
  settings.max_num_batched_tokens =
      std::min(settings.max_num_batched_tokens, settings.max_num_seqs * settings.max_model_len);
  if (!launch.device.has_value()) {
    settings.assumed.push_back(absl::StrFormat(
        "max_num_batched_tokens %d, the default of devices from 70 to 160 GiB (--gpu says which it is)",
        settings.max_num_batched_tokens));
  }
}

// The engine's own checks of its schedule.
absl::Status CheckBatch(const EngineLaunch& launch, const EngineSettings& settings) {
  constexpr std::string_view kFlag = "--max-num-batched-tokens";
  const std::int64_t tokens = settings.max_num_batched_tokens;
  if (tokens < settings.max_num_seqs) {
    return FieldError(reason::kConflictingFields, kFlag,
                      absl::StrFormat("%s %d is less than --max-num-seqs %d; the engine raises ValueError; "
                                      "raise the first or lower the second",
                                      kFlag, tokens, settings.max_num_seqs));
  }
  if (launch.options.chunked_prefill == false && tokens < settings.max_model_len) {
    return FieldError(
        reason::kConflictingFields, kFlag,
        absl::StrFormat("%s %d is less than --max-model-len %d without chunked prefill; the engine "
                        "raises ValueError; raise the first or lower the second",
                        kFlag, tokens, settings.max_model_len));
  }
  return absl::OkStatus();
}

void SetInFlight(const EngineLaunch& launch, EngineSettings& settings) {
  if (!launch.release.counts_batches_in_flight()) return;  // one batch, whatever the schedule
  static constexpr std::array<std::string_view, 9> kAhead = {
      "", "mtp", "eagle", "eagle3", "dflash", "dspark", "dflare", "draft_model", "ngram_gpu"};
  const bool able = std::find(kAhead.begin(), kAhead.end(), settings.spec_method) != kAhead.end();
  const bool ahead = launch.options.async_scheduling.value_or(able && launch.release.schedules_ahead());
  const bool newer_runner = launch.options.v2_model_runner.value_or(settings.spec_method == "dspark");
  settings.batches_in_flight = settings.pp;
  if (ahead && newer_runner) settings.batches_in_flight = settings.pp + 1;
  if (ahead && !newer_runner && settings.pp == 1) settings.batches_in_flight = 2;
}

// Models whose state can be cached for every block; the others align.
bool SupportsAllMode(const ModelDescription& model) {
  return AnyMixer(model, [](const MixerShape& m) { return IsOneOf<Mamba1Shape, Mamba2Shape>(m); });
}

void SetCaching(const EngineLaunch& launch, EngineSettings& settings) {
  using Mode = vllm::MambaCacheMode;
  const bool hybrid = HasStates(launch.target);
  const bool encoder = launch.target.encoder.has_value();
  settings.prefix_caching = launch.options.prefix_caching.value_or(
      !encoder && (!hybrid || launch.release.hybrids_cache_prefixes()));
  if (!hybrid || !settings.prefix_caching) return;
  const std::optional<Mode> said =
      vllm::ParseMambaCacheMode(launch.options.mamba_cache_mode.value_or("none"));
  const bool able = SupportsAllMode(launch.target);
  Mode mode = said.value_or(Mode::kNone);
  if (mode == Mode::kNone) {
    const bool drafts = !settings.spec_method.empty() && launch.release.aligns_with_drafts();
    mode = able && !launch.release.always_aligns() && !drafts ? Mode::kAll : Mode::kAlign;
  }
  if (mode == Mode::kAll && !able) mode = Mode::kAlign;
  if (mode == Mode::kAlign && !launch.release.has_align_mode()) {
    settings.prefix_caching = false;  // the engine warned, and went on without
    mode = Mode::kNone;
  }
  settings.mamba_cache_mode = mode;
}

std::string ModelDtypeWord(const EngineLaunch& launch) {
  std::string said = launch.options.dtype.value_or("auto");
  if (said == "half" || said == "float16") return "float16";
  if (said == "float" || said == "float32") return "float32";
  if (said == "bfloat16") return said;
  // The engine computes fp32 checkpoints in half precision.
  const bool half = launch.target.dtype == DType::kF16 || launch.target.dtype == DType::kF32;
  return half ? "float16" : "bfloat16";
}

void SetCacheDtype(const EngineLaunch& launch, EngineSettings& settings) {
  std::string word = launch.options.kv_cache_dtype.value_or("auto");
  const bool compressed =
      AnyMixer(launch.target, [](const MixerShape& m) { return IsOneOf<CompressorShape>(m); });
  if (word == "auto" && launch.target.quantisation.cache_dtype == DType::kFp8E4M3) word = "fp8_e4m3";
  if (word == "auto" && IsSparse(launch.target) && launch.release.sparse_defaults_to_fp8())
    word = "fp8_ds_mla";
  const bool fp8 = word.substr(0, 3) == "fp8";
  if (compressed && (word == "auto" || fp8)) word = "fp8_ds_mla";
  const bool sm120 = settings.backend == "FLASHINFER_MLA_SPARSE_SM120";
  const bool packs = settings.backend.empty() || settings.backend == "FLASHMLA_SPARSE" || sm120;
  if (sm120 && word == "auto") word = "fp8_ds_mla";
  if (!compressed && fp8 && IsSparse(launch.target) && packs) word = "fp8_ds_mla";
  settings.cache_dtype = word == "auto" ? ModelDtypeWord(launch) : word;
}

void SetBlocks(const EngineLaunch& launch, EngineSettings& settings) {
  const bool compressed =
      AnyMixer(launch.target, [](const MixerShape& m) { return IsOneOf<CompressorShape>(m); });
  settings.backend = launch.options.attention_backend.value_or(compressed ? "" : TargetBackendUnsaid(launch));
  const std::vector<const BackendRow*> rows = RowsOfEngine(settings.backend);
  if (launch.options.attention_backend.has_value() && rows.empty() && !compressed) {
    settings.assumed.push_back("blocks of 16 tokens: backend " + settings.backend + " is not in the table");
  }
  const bool cdna = launch.device.has_value() && launch.device->sm == 0;
  if (compressed) {
    settings.of_one_size = true;
    settings.kernel_block = kCompressedBlock;
    settings.block = kCompressedBlock;
  } else if (IsSparse(launch.target) && !cdna) {
    // The indexer's cache is registered first, and its kernels decide.
    settings.of_one_size = true;
    settings.kernel_block = kIndexerBlock;
    settings.block = kIndexerBlock;
  } else if (!rows.empty()) {
    settings.kernel_block = SmallestPage(*rows.front());
    settings.block = PreferredBlock(*rows.front());
  } else if (settings.backend.empty() && HasLatent(launch.target) && !HasStates(launch.target) &&
             !launch.options.block_size.has_value()) {
    settings.assumed.push_back(
        "blocks of 16 tokens; some latent backends take 32, 64 or 128 (--gpu or --attention-backend says)");
  }
  settings.block_was_said = launch.options.block_size.has_value();
  settings.block = launch.options.block_size.value_or(settings.block);
}

// Blocks that the model's own kernels do not take, whatever the backend.
absl::Status CheckBlocks(const EngineSettings& settings) {
  if (!settings.block_was_said || !settings.of_one_size || settings.block % settings.kernel_block == 0) {
    return absl::OkStatus();
  }
  return FieldError(
      reason::kValueOutOfRange, "--block-size",
      absl::StrFormat("--block-size %d is no multiple of %d, the block of the model's sparse kernels; "
                      "the engine raises ValueError; use %d",
                      settings.block, settings.kernel_block, settings.kernel_block));
}

}  // namespace

bool HasStates(const ModelDescription& model) {
  return AnyMixer(model, [](const MixerShape& m) {
    return IsOneOf<KdaShape, Mamba1Shape, Mamba2Shape, GatedDeltaShape, LightningShape, ShortConvShape>(m);
  });
}

bool HasLatent(const ModelDescription& model) {
  return AnyMixer(model, [](const MixerShape& m) { return IsOneOf<MlaShape>(m); });
}

bool IsSparse(const ModelDescription& model) {
  return HasLatent(model) && AnyMixer(model, [](const MixerShape& m) { return IsOneOf<IndexerShape>(m); });
}

absl::StatusOr<EngineSettings> SettingsOf(const EngineLaunch& launch) {
  EngineSettings settings;
  SetParallelism(launch, settings);
  KVASIR_RETURN_IF_ERROR(CheckParallelism(launch, settings));
  KVASIR_RETURN_IF_ERROR(SetEngineLength(launch, settings));
  KVASIR_ASSIGN_OR_RETURN(const Drafting drafting, DraftingOf(launch));
  settings.spec_method = drafting.method;
  settings.spec_tokens = drafting.tokens;
  SetBatch(launch, settings);
  KVASIR_RETURN_IF_ERROR(CheckBatch(launch, settings));
  SetInFlight(launch, settings);
  SetCaching(launch, settings);
  SetBlocks(launch, settings);
  KVASIR_RETURN_IF_ERROR(CheckBlocks(settings));
  SetCacheDtype(launch, settings);
  KVASIR_RETURN_IF_ERROR(CheckInterleave(launch, settings));
  KVASIR_RETURN_IF_ERROR(CheckEngineGraphs(launch, settings));
  KVASIR_RETURN_IF_ERROR(CheckEngineBackends(launch, settings));
  settings.gpu_memory_utilization =
      launch.options.gpu_memory_utilization.value_or(launch.release.profiles_graphs() ? 0.92 : 0.90);
  return settings;
}

}  // namespace kvasir
