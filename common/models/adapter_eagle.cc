// EAGLE and EAGLE-3 drafts: Llama-style layers that read the target's hidden states and draft token by token,
// causally. A window counts only where layer_types names it: what sliding_window says was copied from the
// target.
#include <vector>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

std::vector<std::int64_t> ReadTaps(const ConfigObject& config) {
  constexpr std::string_view kTaps = "eagle_aux_hidden_state_layer_ids";
  const auto nested = config.ObjectIf("eagle_config");
  const ConfigObject& holder = nested.has_value() && nested->Has(kTaps) ? *nested : config;
  if (!holder.Has(kTaps)) return {};
  return holder.IntList(kTaps, {0, kLayersMax - 1});
}

DraftShape ReadDraft(const ConfigObject& config, DraftMethod method, const ModelDescription& model) {
  DraftShape draft;
  draft.method = method;
  draft.causal = true;
  draft.windowed_causal = true;
  draft.target_hidden = config.IntOr("target_hidden_size", kDimRange, model.hidden);
  if (method == DraftMethod::kEagle3) {
    draft.target_taps = ReadTaps(config);
    draft.own_head = true;
    const std::int64_t head = config.IntOr("draft_vocab_size", kDimRange, model.vocab);
    if (head != model.vocab) draft.head_vocab = head;
  }
  return draft;
}

void ReadLlamaDraft(const ConfigObject& config, DraftMethod method, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  const MlpShape mlp = ReadDense(config);
  for (const std::int64_t window : ReadWindowsByPattern(config, ReadLayerCount(config), 1)) {
    attention.window = window;
    AddLayer(attention, mlp, model.layers);
  }
  model.draft = ReadDraft(config, method, model);
}

}  // namespace

void ReadEagle(const ConfigObject& config, ModelDescription& model) {
  ReadLlamaDraft(config, DraftMethod::kEagle, model);
}

void ReadEagle3(const ConfigObject& config, ModelDescription& model) {
  ReadLlamaDraft(config, DraftMethod::kEagle3, model);
}

void ReadEagleDeepseek(const ConfigObject& config, ModelDescription& model) {
  ReadDeepseek(config, model);
  model.mtp_depth = 0;
  model.mtp_layers.clear();
  model.draft = ReadDraft(config, DraftMethod::kEagle, model);
}

}  // namespace kvasir
