#include "planner/request/engine_specs.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/request/engine_drafting.h"
#include "planner/request/engine_layer_names.h"
#include "planner/request/engine_layer_specs.h"
#include "planner/request/hybrid_rows.h"
#include "planner/request/launch_sections.h"
#include "planner/request/pipeline_stages.h"

namespace kvasir {
namespace {

using vllm::EngineSpec;

class CaseBuilder {
 public:
  explicit CaseBuilder(const EngineLaunch& launch) : launch_(launch) {}

  absl::StatusOr<EngineQuestion> Build(const std::vector<std::int64_t>& memory) {
    KVASIR_ASSIGN_OR_RETURN(question_.settings, SettingsOf(launch_));
    KVASIR_ASSIGN_OR_RETURN(drafting_, DraftingOf(launch_));
    KVASIR_RETURN_IF_ERROR(SetUpLayers());
    KVASIR_ASSIGN_OR_RETURN(stages_, StagesOf(launch_.options, LayersTotal(), settings().pp));
    AddTarget();
    AddDraft();
    if (question_.engine_case.layers.size() > static_cast<std::size_t>(vllm::kEngineLayersMax)) {
      return FieldError(reason::kTooManyItems, "model", "the model has too many caches to plan");
    }
    KVASIR_RETURN_IF_ERROR(AddWorkers(memory));
    FillConfig();
    return std::move(question_);
  }

 private:
  [[nodiscard]] const EngineSettings& settings() const { return question_.settings; }
  [[nodiscard]] std::int64_t LayersTotal() const {
    return static_cast<std::int64_t>(launch_.target.layers.size());
  }

  absl::Status SetUpLayers() {
    const LaunchOptions& said = launch_.options;
    LayerSetting& to = setting_;
    to.tp = settings().tp;
    to.cache_dtype = settings().cache_dtype;
    to.model_dtype = ElementOfWord(said.dtype.value_or("auto")).value_or(ElementOf(launch_.target.dtype));
    if (to.model_dtype == vllm::ElementType::kFloat32 && said.dtype.value_or("auto") == "auto") {
      to.model_dtype = vllm::ElementType::kFloat16;  // the engine computes fp32 checkpoints in half precision
    }
    to.block = settings().block;
    to.window_block = launch_.release.windows_take_smallest_block() ? settings().kernel_block : to.block;
    to.mode = settings().mamba_cache_mode;
    to.spec_tokens = settings().spec_tokens;
    to.recover = said.replay_ssm.value_or(false) && to.spec_tokens > 0;
    const bool replays = said.replay_ssm.value_or(false) && to.spec_tokens == 0;
    to.replay_buffer = replays ? said.replay_ssm_buffer.value_or(16) : 0;
    to.conv_dtype = ElementOfWord(said.mamba_cache_dtype.value_or("auto"));
    to.state_dtype = ElementOfWord(said.mamba_ssm_cache_dtype.value_or("auto"));
    to.state_dim_first = said.conv_state_layout == "DS";
    to.windows_as_full = said.disable_sliding_window.value_or(false);
    to.deepseek_v4 = launch_.target.architecture.substr(0, 10) == "DeepseekV4";
    to.indexer_dtype = said.indexer_kv_dtype.value_or("");
    to.state_block = settings().mamba_cache_mode == vllm::MambaCacheMode::kNone
                         ? settings().max_model_len
                         : said.mamba_block_size.value_or(to.block);
    return AlignHybrid();
  }

  absl::Status AlignHybrid() {
    const std::optional<EngineSpec> state = StateSpecOf(launch_.target, setting_);
    if (!state.has_value()) return absl::OkStatus();
    const auto bytes = vllm::UnpaddedPageBytes(*state);
    if (!bytes.ok()) return TooLarge(bytes.failure().message);
    question_.state_bytes = *bytes;
    const std::optional<EngineSpec> row = AlignedRowOf(launch_.target, setting_);
    if (!row.has_value()) return absl::OkStatus();
    const auto row_bytes = vllm::UnpaddedPageBytes(*row);
    if (!row_bytes.ok()) return TooLarge(row_bytes.failure().message);
    HybridQuestion ask;
    ask.attention_bytes = *row_bytes;
    ask.state_bytes = *bytes;
    ask.kernel_block = settings().kernel_block;
    ask.block = setting_.block;
    ask.unit_least = vllm::IsMlaKind(row->kind) ? launch_.release.latent_hybrid_unit() : 1;
    ask.mode = setting_.mode;
    ask.chunk = launch_.options.mamba_block_size.value_or(256);
    ask.max_model_len = settings().max_model_len;
    question_.hybrid = AlignHybridBlocks(ask);
    if (!question_.hybrid.has_value()) return TooLarge("a hybrid's block");
    const HybridBlocks& blocks = *question_.hybrid;
    if (blocks.attention_block > setting_.block) {
      question_.log.push_back(
          absl::StrFormat("Setting attention block size to %d tokens to ensure that attention page size is "
                          ">= mamba page size.",
                          blocks.attention_block));
    }
    if (blocks.page_padded.has_value()) {
      const double share =
          100.0 * static_cast<double>(*blocks.page_padded - *bytes) / static_cast<double>(*bytes);
      question_.log.push_back(
          absl::StrFormat("Padding mamba page size by %.2f%% to ensure that mamba page size and "
                          "attention page size are exactly equal.",
                          share));
    }
    setting_.block = blocks.attention_block;
    if (!launch_.release.windows_take_smallest_block()) setting_.window_block = setting_.block;
    setting_.state_block = blocks.state_block;
    setting_.state_page = blocks.page_padded;
    return absl::OkStatus();
  }

  static absl::Status TooLarge(const std::string& what) {
    return FieldError(reason::kValueOutOfRange, "model", what + ": sizes are beyond what can be planned");
  }

  std::int32_t SpecIndex(const EngineSpec& spec) {
    std::vector<EngineSpec>& specs = question_.engine_case.specs;
    const auto at = std::find(specs.begin(), specs.end(), spec);
    if (at != specs.end()) return static_cast<std::int32_t>(at - specs.begin());
    specs.push_back(spec);
    return static_cast<std::int32_t>(specs.size()) - 1;
  }

  void AddCache(const std::string& prefix, const MixerShape& mixer, const LayerSetting& setting,
                std::size_t stage) {
    const std::optional<EngineSpec> spec = LayerSpecOf(mixer, setting);
    if (!spec.has_value()) return;
    const std::string base = prefix + CacheNameOf(mixer, setting.deepseek_v4);
    std::string name = base;
    for (int i = 1; IsNameOfLayer(name); ++i) name = base + "." + std::to_string(i);
    layers_of_stage_[stage].push_back(static_cast<std::int32_t>(question_.engine_case.layers.size()));
    question_.engine_case.layers.push_back({std::move(name), SpecIndex(*spec)});
  }

  // Whether the layer being added has a cache of that name already; the number in it tells layers apart.
  [[nodiscard]] bool IsNameOfLayer(const std::string& name) const {
    const auto& caches = question_.engine_case.layers;
    return std::any_of(caches.begin() + static_cast<std::ptrdiff_t>(layer_begin_), caches.end(),
                       [&name](const vllm::EngineLayer& cache) { return cache.name == name; });
  }

  void AddLayer(const std::string& stem, std::int64_t number, const ModelLayer& layer,
                const LayerSetting& setting, std::size_t stage) {
    const std::string prefix = stem + std::to_string(number) + ".";
    layer_begin_ = question_.engine_case.layers.size();
    AddCache(prefix, layer.mixer, setting, stage);
    for (const MixerShape& extra : layer.extra) AddCache(prefix, extra, setting, stage);
  }

  [[nodiscard]] LayerSetting SettingOfTarget(const ModelLayer& layer) const {
    LayerSetting setting = setting_;
    if (!launch_.options.kv_cache_dtype_skip_layers.has_value()) return setting;
    const auto* attention = std::get_if<AttentionShape>(&layer.mixer);
    const bool windowed = attention != nullptr && attention->window > 0;
    for (const std::string& word : *launch_.options.kv_cache_dtype_skip_layers) {
      const bool skipped = word == std::to_string(layer.index) || (windowed && word == "sliding_window");
      if (skipped) setting.cache_dtype = "auto";
    }
    return setting;
  }

  void AddTarget() {
    layers_of_stage_.resize(stages_.size());
    const std::string stem = LayerStemOf(launch_.target);
    std::size_t stage = 0;
    std::int64_t end = stages_[0];
    for (const ModelLayer& layer : launch_.target.layers) {
      while (layer.index >= end && stage + 1 < stages_.size()) end += stages_[++stage];
      AddLayer(stem, layer.index, layer, SettingOfTarget(layer), stage);
    }
  }

  void AddDraft() {
    LayerSetting setting = setting_;
    setting.tp = launch_.options.spec_tensor_parallel.value_or(settings().tp);
    if (launch_.options.spec_kv_cache_dtype.has_value())
      setting.cache_dtype = *launch_.options.spec_kv_cache_dtype;
    std::int64_t number = 0;
    for (const ModelLayer& layer : drafting_.layers) {
      setting.non_causal = !drafting_.causal;
      const std::int64_t at = drafting_.own_numbers ? number : LayersTotal() + number;
      AddLayer(drafting_.own_numbers ? "draft_model.model.layers." : "model.layers.", at, layer, setting,
               layers_of_stage_.size() - 1);
      ++number;
    }
  }

  absl::Status AddWorkers(const std::vector<std::int64_t>& memory) {
    const auto given = static_cast<std::int64_t>(memory.size());
    const std::int64_t pp = settings().pp;
    const std::int64_t ranks = pp * settings().tp;
    if (given != 1 && given != pp && given != ranks) {
      return FieldError(
          reason::kValueOutOfRange, "--kv-memory",
          absl::StrFormat("--kv-memory has %d sizes, must be 1, or %d (one a stage), or %d (one a rank)",
                          given, pp, ranks));
    }
    const std::int64_t workers = std::max(given, pp);
    if (workers > vllm::kEngineWorkersMax) {
      return FieldError(reason::kTooManyItems, "--kv-memory",
                        "too many ranks to plan; give one size a stage");
    }
    for (std::int64_t i = 0; i < workers; ++i) {
      vllm::EngineWorker worker;
      worker.available_bytes = memory[given == 1 ? 0 : static_cast<std::size_t>(i)];
      if (pp > 1) worker.layers = layers_of_stage_[static_cast<std::size_t>(i * pp / workers)];
      question_.engine_case.workers.push_back(std::move(worker));
    }
    return absl::OkStatus();
  }

  void FillConfig() {
    const LaunchOptions& said = launch_.options;
    vllm::EngineConfig& config = question_.engine_case.config;
    config.block_size = setting_.block;
    config.max_model_len = settings().max_model_len;
    config.auto_fit = settings().auto_fit;
    config.max_num_batched_tokens = settings().max_num_batched_tokens;
    config.max_concurrent_batches = settings().batches_in_flight;
    if (launch_.target.encoder.has_value())
      config.max_num_encoder_input_tokens = launch_.target.encoder->tokens;
    config.tp = settings().tp;
    config.pp = settings().pp;
    config.dcp = settings().dcp;
    config.pcp = settings().pcp;
    config.num_gpu_blocks_override = said.num_gpu_blocks_override;
    config.enable_prefix_caching = settings().prefix_caching;
    config.mamba_cache_mode = settings().mamba_cache_mode;
    config.prefix_match_unit = said.prefix_match_unit;
    config.disable_hybrid_kv_cache_manager = said.disable_hybrid_kv_cache_manager.value_or(false);
    config.kv_connector = said.kv_connector.has_value();
    config.cross_layer_blocks = said.kv_connector_extra_config.has_value() &&
                                LaunchJsonAsks(*said.kv_connector_extra_config, "enable_cross_layers_blocks");
    if (!settings().spec_method.empty()) {
      vllm::EngineSpeculative speculative;
      speculative.method = settings().spec_method;
      speculative.num_speculative_tokens = settings().spec_tokens;
      speculative.num_nextn_predict_layers = std::max<std::int64_t>(launch_.target.mtp_depth, 1);
      config.speculative = speculative;
      if (settings().spec_method == "mtp") {
        config.num_prefill_lookahead_tokens =
            std::min(speculative.num_nextn_predict_layers, settings().spec_tokens);
      }
    }
    if (said.kv_cache_layout == "HND") config.kv_cache_layout = vllm::KvLayout::kLBHNC;
    if (setting_.deepseek_v4) {
      config.model_type = "deepseek_v4";
      config.kv_cache_layout = vllm::KvLayout::kBLHNC;
    }
    config.total_num_hidden_layers = LayersTotal();
  }

  const EngineLaunch& launch_;
  EngineQuestion question_;
  Drafting drafting_;
  LayerSetting setting_;
  std::vector<std::int64_t> stages_;
  std::vector<std::vector<std::int32_t>> layers_of_stage_;
  std::size_t layer_begin_ = 0;  // caches before those of the layer being added
};

}  // namespace

absl::StatusOr<EngineQuestion> EngineCaseOf(const EngineLaunch& launch,
                                            const std::vector<std::int64_t>& memory) {
  KVASIR_ASSIGN_OR_RETURN(EngineQuestion question, CaseBuilder(launch).Build(memory));
  if (question.engine_case.layers.empty()) {
    return FieldError(
        reason::kUnknownValue, "model",
        absl::StrFormat("%s keeps no cache in any layer; there is nothing to plan", launch.target.name));
  }
  return question;
}

}  // namespace kvasir
