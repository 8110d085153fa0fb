#include "planner/request/engine_config_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "planner/request/case_object.h"

namespace kvasir {
namespace {

using vllm::EngineConfig;

constexpr CaseRange kTokens{1, std::int64_t{1} << 32};
constexpr CaseRange kTokensOrNone{0, std::int64_t{1} << 32};
constexpr CaseRange kRanks{1, 4096};
constexpr CaseRange kBlocks{0, std::int64_t{1} << 40};

bool IsTrue(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (!value.is_string()) return false;
  std::string text = value.get<std::string>();
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text == "true";
}

// Only enable_cross_layers_blocks matters to planning; a connector's other keys are its own.
void ReadConnector(CaseObject& object, EngineConfig& config) {
  const nlohmann::json* const extra = object.Find("kv_connector_extra_config");
  if (extra == nullptr) return;
  if (!extra->is_object()) {
    object.Fail(reason::kMalformedMessage, "kv_connector_extra_config", *extra, "is not an object");
    return;
  }
  config.kv_connector = true;
  const auto value = extra->find("enable_cross_layers_blocks");
  config.cross_layer_blocks = value != extra->end() && IsTrue(*value);
}

void ReadSpeculative(CaseObject& object, EngineConfig& config, absl::Status& error) {
  const nlohmann::json* const node = object.Find("speculative");
  if (node == nullptr) return;
  CaseObject speculative(*node, object.PathOf("speculative"), error);
  vllm::EngineSpeculative& out = config.speculative.emplace();
  out.method = speculative.MaybeText("method").value_or("");
  if (out.method.empty() || out.method.size() > 64 ||
      !std::all_of(out.method.begin(), out.method.end(), [](char c) { return '!' <= c && c <= '~'; })) {
    speculative.FailText(reason::kUnknownValue, "method", "is missing or no word, as eagle3, mtp, dspark");
  }
  out.num_speculative_tokens = speculative.IntOr("num_speculative_tokens", {0, 1 << 20}, 0);
  out.num_nextn_predict_layers = speculative.IntOr("num_nextn_predict_layers", {0, 1 << 20}, 1);
  out.disable_eagle_block_drop = speculative.BoolOr("disable_eagle_block_drop", false);
  speculative.RefuseUnread();
}

void ReadLayout(CaseObject& object, EngineConfig& config) {
  const std::optional<std::string> name = object.MaybeText("kv_cache_layout");
  if (!name.has_value()) return;
  const std::optional<vllm::KvLayout> layout = vllm::ParseKvLayout(*name);
  if (!layout.has_value()) {
    object.FailText(reason::kUnknownValue, "kv_cache_layout",
                    absl::StrFormat("is \"%s\"; known are LBHNC, LBNHC, LHBNC, BLHNC, BLNHC, BHLNC",
                                    name->substr(0, 64)));
    return;
  }
  config.kv_cache_layout = *layout;
}

void ReadCacheMode(CaseObject& object, EngineConfig& config) {
  const std::optional<std::string> name = object.MaybeText("mamba_cache_mode");
  if (!name.has_value()) return;
  const std::optional<vllm::MambaCacheMode> mode = vllm::ParseMambaCacheMode(*name);
  if (!mode.has_value()) {
    object.FailText(reason::kUnknownValue, "mamba_cache_mode",
                    absl::StrFormat("is \"%s\"; known are none, align, all", name->substr(0, 64)));
    return;
  }
  config.mamba_cache_mode = *mode;
}

}  // namespace

EngineConfig ReadEngineConfig(const nlohmann::json& node, std::string path, absl::Status& error) {
  CaseObject object(node, std::move(path), error);
  EngineConfig config;
  config.block_size = object.IntOr("block_size", kTokens, config.block_size);
  config.max_model_len = object.Int("max_model_len", kTokens);
  config.auto_fit = object.IntOr("original_max_model_len", {-1, kTokens.max}, 0) == -1;
  config.max_num_batched_tokens =
      object.IntOr("max_num_batched_tokens", kTokens, config.max_num_batched_tokens);
  config.max_concurrent_batches =
      object.IntOr("max_concurrent_batches", kRanks, config.max_concurrent_batches);
  config.max_num_encoder_input_tokens = object.IntOr("max_num_encoder_input_tokens", kTokensOrNone, 0);
  config.tp = object.IntOr("tp", kRanks, 1);
  config.pp = object.IntOr("pp", kRanks, 1);
  config.dcp = object.IntOr("dcp", kRanks, 1);
  config.pcp = object.IntOr("pcp", kRanks, 1);
  config.num_gpu_blocks_override = object.MaybeInt("num_gpu_blocks_override", kBlocks);
  config.enable_prefix_caching = object.BoolOr("enable_prefix_caching", true);
  ReadCacheMode(object, config);
  config.prefix_match_unit = object.MaybeInt("prefix_match_unit", kTokens);
  config.disable_hybrid_kv_cache_manager = object.BoolOr("disable_hybrid_kv_cache_manager", false);
  ReadConnector(object, config);
  ReadSpeculative(object, config, error);
  config.num_prefill_lookahead_tokens = object.MaybeInt("num_prefill_lookahead_tokens", kTokensOrNone);
  ReadLayout(object, config);
  config.model_type = object.MaybeText("model_type").value_or("").substr(0, 64);
  config.total_num_hidden_layers = object.MaybeInt("total_num_hidden_layers", {0, 1 << 20});
  object.RefuseUnread();
  return config;
}

}  // namespace kvasir
