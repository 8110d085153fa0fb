// Drafts in the form of vllm-project/speculators: speculators_model_type names the method,
// transformer_layer_config has the layers as a file of their own model type would, and the draft's fields
// stand around it. How an engine reads it: vllm/transformers_utils/configs/speculators.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

constexpr std::array kMethods = {std::pair{std::string_view("eagle3"), DraftMethod::kEagle3},
                                 std::pair{std::string_view("peagle"), DraftMethod::kPeagle},
                                 std::pair{std::string_view("dflash"), DraftMethod::kDflash},
                                 std::pair{std::string_view("dspark"), DraftMethod::kDspark}};

std::optional<DraftMethod> ReadMethod(const ConfigObject& config) {
  const std::string word = config.Text("speculators_model_type");
  for (const auto& [known, method] : kMethods) {
    if (known == word) return method;
  }
  config.Fail(ConfigFault::kUnsupported, "speculators_model_type", "known: eagle3, peagle, dflash, dspark");
  return std::nullopt;
}

// Outputs of embedding and layers are numbered together here, from 0; block drafts count layers alone.
std::vector<std::int64_t> ReadTaps(const ConfigObject& config, bool block) {
  const std::string_view field = block ? "aux_hidden_state_layer_ids" : "eagle_aux_hidden_state_layer_ids";
  if (!block && !config.Has(field)) return {};
  std::vector<std::int64_t> taps = config.IntList(field, {block ? 1 : 0, kLayersMax - 1});
  if (block) std::transform(taps.begin(), taps.end(), taps.begin(), [](std::int64_t id) { return id - 1; });
  return taps;
}

// Tokens that the first proposal method drafts in a step; 0: the file does not say.
std::int64_t ReadTokens(const ConfigObject& config) {
  const std::optional<ConfigObject> speculators = config.ObjectIf("speculators_config");
  if (!speculators.has_value() || !speculators->Has("proposal_methods")) return 0;
  const std::vector<ConfigObject> methods = speculators->Objects("proposal_methods");
  return methods.empty() ? 0 : methods.front().IntOr("speculative_tokens", {1, kDraftTokensMax}, 0);
}

// The file's own number of tokens comes before its block, which may begin with the anchor.
std::int64_t ReadBlock(const ConfigObject& config, DraftMethod method) {
  const std::int64_t tokens = ReadTokens(config);
  if (tokens > 0) return method == DraftMethod::kDflash ? tokens + 1 : tokens;
  const std::int64_t block = config.IntOr("block_size", kTokensRange, 0);
  const bool anchored = !config.BoolOr("sample_from_anchor", false);
  return method == DraftMethod::kDspark && anchored && block > 1 ? block - 1 : block;
}

DraftShape ReadDraft(const ConfigObject& config, DraftMethod method, const ModelDescription& model) {
  DraftShape draft;
  draft.method = method;
  const bool block = method == DraftMethod::kDflash || method == DraftMethod::kDspark;
  draft.causal =
      !block || (method == DraftMethod::kDflash && !config.BoolOr("sliding_window_non_causal", true));
  const bool windowed = std::any_of(model.layers.begin(), model.layers.end(), [](const ModelLayer& layer) {
    return std::get<AttentionShape>(layer.mixer).window > 0;
  });
  draft.windowed_causal = draft.causal || (windowed && method == DraftMethod::kDspark);
  draft.target_taps = ReadTaps(config, block);
  draft.target_hidden = config.IntOr("target_hidden_size", kDimRange, model.hidden);
  draft.block = ReadBlock(config, method);
  draft.own_head = !block;
  if (method != DraftMethod::kEagle3) draft.mask_token = config.Int("mask_token_id", {0, model.vocab - 1});
  if (method == DraftMethod::kDspark) {
    draft.markov_rank = config.IntOr("markov_rank", kDimOrNoneRange, 0);
    draft.confidence_head = config.BoolOr("enable_confidence_head", false);
  }
  const std::int64_t head = config.IntOr("draft_vocab_size", kDimRange, model.vocab);
  if (head != model.vocab) draft.head_vocab = head;
  return draft;
}

}  // namespace

void ReadSpeculators(const ConfigObject& config, ModelDescription& model) {
  const std::optional<DraftMethod> method = ReadMethod(config);
  const std::optional<ConfigObject> layers = config.Object("transformer_layer_config");
  if (!method.has_value() || !layers.has_value()) return;
  const std::string type = layers->TextOr("model_type", "llama");
  const bool chain = *method == DraftMethod::kEagle3 || *method == DraftMethod::kPeagle;
  if (chain && type != "llama" && type != "qwen3") {
    layers->Fail(ConfigFault::kUnsupported, "model_type", "known: llama, qwen3");
    return;
  }
  ReadModelFields(*layers, {}, model);
  model.rope = ReadRope(*layers);
  AttentionShape attention = ReadAttention(*layers, model.hidden);
  const MlpShape mlp = ReadDense(*layers);
  for (const std::int64_t window : ReadWindowsByPattern(*layers, ReadLayerCount(*layers), 1)) {
    attention.window = window;
    AddLayer(attention, mlp, model.layers);
  }
  model.draft = ReadDraft(config, *method, model);
}

}  // namespace kvasir
