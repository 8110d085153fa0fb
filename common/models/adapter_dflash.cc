// Drafts that decode a whole block at once over taps of the target: DFlash, DFlare, DSpark (Markov and
// confidence heads), Domino (a recurrent head) and P-EAGLE. Layers are Qwen3's. Attention inside the block is
// not causal, except in layers with a window; dflash_config.causal overrides both.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/markov_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

DraftMethod MethodOf(const ConfigObject& fields, DraftMethod by_architecture) {
  const std::string projector = fields.TextOr("projector_type", "");
  if (projector == "dspark") return DraftMethod::kDspark;
  if (projector == "domino") return DraftMethod::kDomino;
  return by_architecture;
}

// `fields` is dflash_config, or the document where a file has none.
DraftShape ReadDraft(const ConfigObject& config, const ConfigObject& fields, DraftMethod by_architecture,
                     const ModelDescription& model) {
  DraftShape draft;
  draft.method = MethodOf(fields, by_architecture);
  const bool windowed = std::any_of(model.layers.begin(), model.layers.end(), [](const ModelLayer& layer) {
    return std::get<AttentionShape>(layer.mixer).window > 0;
  });
  draft.causal = fields.BoolOr("causal", config.BoolOr("full_attention_causal", false));
  draft.windowed_causal = draft.causal || (windowed && !fields.Has("causal"));
  draft.block = config.IntOr("block_size", kTokensRange, 0);
  draft.target_hidden = config.IntOr("target_hidden_size", kDimRange, model.hidden);
  draft.target_layers = config.IntOr("num_target_layers", {0, kLayersMax}, 0);
  const ConfigObject& taps = config.Has("target_layer_ids") ? config : fields;
  if (draft.method != DraftMethod::kPeagle || taps.Has("target_layer_ids"))
    draft.target_taps = taps.IntList("target_layer_ids", {0, kLayersMax - 1});
  const ConfigObject& mask = fields.Has("mask_token_id") ? fields : config;
  draft.mask_token = mask.IntOr("mask_token_id", {0, model.vocab - 1}, 0);
  ReadMarkovHeads(fields.Has("markov_rank") ? fields : config, draft);
  draft.gru_dim = fields.IntOr("gru_hidden_dim", kDimOrNoneRange, 0);
  draft.gru_embedding = fields.IntOr("emb_dim", kDimOrNoneRange, 0);
  const std::int64_t head = config.IntOr("draft_vocab_size", kDimRange, model.vocab);
  if (head != model.vocab) draft.head_vocab = head;
  return draft;
}

// layer_types rules; without it all layers have the window if use_swa says so.
std::vector<std::int64_t> ReadDraftWindows(const ConfigObject& config, const ConfigObject& fields) {
  const std::int64_t layers = ReadLayerCount(config);
  if (config.Has("layer_types") || !fields.BoolOr("use_swa", false))
    return ReadWindowsByPattern(config, layers, 1);
  const ConfigObject& holder = fields.Has("sliding_window") ? fields : config;
  return std::vector(static_cast<std::size_t>(layers), holder.Int("sliding_window", kTokensRange));
}

void ReadBlockDraft(const ConfigObject& config, DraftMethod method, ModelDescription& model) {
  if (const std::string type = config.TextOr("model_type", ""); type.starts_with("deepseek")) {
    config.Fail(ConfigFault::kUnsupported, "model_type",
                "this draft lies in the target's own checkpoint: take the target's layers of multi-token "
                "prediction");
    return;
  }
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  const MlpShape mlp = ReadDense(config);
  const std::optional<ConfigObject> nested = config.ObjectIf("dflash_config");
  const ConfigObject& fields = nested.has_value() ? *nested : config;
  for (const std::int64_t window : ReadDraftWindows(config, fields)) {
    attention.window = window;
    AddLayer(attention, mlp, model.layers);
  }
  model.draft = ReadDraft(config, fields, method, model);
}

}  // namespace

void ReadDflash(const ConfigObject& config, ModelDescription& model) {
  ReadBlockDraft(config, DraftMethod::kDflash, model);
}
void ReadDflare(const ConfigObject& config, ModelDescription& model) {
  ReadBlockDraft(config, DraftMethod::kDflare, model);
}
void ReadDspark(const ConfigObject& config, ModelDescription& model) {
  ReadBlockDraft(config, DraftMethod::kDspark, model);
}
void ReadDomino(const ConfigObject& config, ModelDescription& model) {
  ReadBlockDraft(config, DraftMethod::kDomino, model);
}
void ReadPeagle(const ConfigObject& config, ModelDescription& model) {
  ReadBlockDraft(config, DraftMethod::kPeagle, model);
}

}  // namespace kvasir
