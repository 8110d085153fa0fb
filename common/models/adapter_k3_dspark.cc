// Kimi-K3's DSpark draft: a few dense MLA layers over hidden states tapped from the target, and a Markov
// head.
#include <cstddef>
#include <optional>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/markov_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

// The published draft decodes its block without a mask; newer ones are trained causal and say so here.
bool ReadCausal(const ConfigObject& config) {
  const bool fallback = config.BoolOr("full_attention_causal", false);
  if (!config.Has("dflash_config")) return fallback;
  const std::optional<ConfigObject> dflash = config.Object("dflash_config");
  return dflash.has_value() ? dflash->BoolOr("causal", fallback) : fallback;
}

DraftShape ReadDraft(const ConfigObject& config, std::int64_t vocab) {
  DraftShape draft;
  draft.causal = ReadCausal(config);
  draft.windowed_causal = draft.causal;
  draft.target_hidden = config.Int("target_hidden_size", kDimRange);
  draft.target_layers = config.Int("target_num_hidden_layers", kLayersRange);
  draft.target_taps = config.IntList("target_layer_ids", {0, draft.target_layers - 1});
  const auto taps = static_cast<std::int64_t>(draft.target_taps.size());
  if (config.IntOr("num_target_layers", kLayersRange, taps) != taps) {
    config.Fail(ConfigFault::kContradiction, "num_target_layers",
                absl::StrFormat("target_layer_ids names %d layers", taps));
  }
  draft.mask_token = config.Int("mask_token_id", {0, vocab - 1});
  ReadMarkovHeads(config, draft);
  // The checkpoint ships a copy of the embedding table and no output head.
  draft.own_embedding = true;
  draft.own_head = false;
  return draft;
}

}  // namespace

void ReadK3Dspark(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  MlaShape mla = ReadMla(config);
  mla.rotate = !config.BoolOr("mla_use_nope", false);
  mla.output_gate = config.BoolOr("mla_use_output_gate", false);
  const MlpShape mlp = ReadDense(config);
  const std::int64_t layers = ReadLayerCount(config);
  for (std::int64_t i = 0; i < layers; ++i) AddLayer(mla, mlp, model.layers);
  if (config.IntOr("draft_vocab_size", kDimRange, model.vocab) != model.vocab) {
    config.Fail(ConfigFault::kUnsupported, "draft_vocab_size",
                absl::StrFormat("a draft with its own vocabulary; expected vocab_size = %d", model.vocab));
  }
  model.draft = ReadDraft(config, model.vocab);
}

}  // namespace kvasir
