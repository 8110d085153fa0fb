#include "planner/request/explicit_layers.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/sha256.h"

namespace kvasir {
namespace {

std::string TensorsText(std::string_view head, const std::vector<StateTensor>& tensors) {
  std::string text;
  for (const StateTensor& t : tensors) {
    text += absl::StrFormat(" %s %s %d %s", head, t.name, t.elements, DTypeName(t.dtype));
  }
  return text;
}

struct CacheText {
  std::string operator()(const KeyValueCache& c) const {
    return absl::StrFormat("key_value %d %d %d %d %d", c.heads, c.kv_heads, c.key_dim, c.value_dim, c.window);
  }
  std::string operator()(const LatentCache& c) const {
    return absl::StrFormat("latent %d %d %d %d", c.heads, c.latent_dim, c.rope_dim, c.window);
  }
  std::string operator()(const StateCache& c) const {
    return absl::StrFormat("state %d", c.heads) + TensorsText("state", c.states) +
           TensorsText("ring", c.ring);
  }
};

struct CacheWord {
  std::string operator()(const KeyValueCache& c) const { return c.window > 0 ? "window" : "attention"; }
  std::string operator()(const LatentCache&) const { return "mla"; }
  std::string operator()(const StateCache&) const { return "state"; }
};

// One line a layer, sorted, so that the digest does not depend on the list's order.
std::string DigestOf(const std::vector<CacheLayer>& layers, bool anchor_row) {
  std::vector<std::string> lines;
  lines.reserve(layers.size());
  for (const CacheLayer& layer : layers) {
    lines.push_back(absl::StrFormat("%s %s %s\n", LayerIdText(layer.id), layer.name,
                                    std::visit(CacheText{}, layer.cache)));
  }
  std::sort(lines.begin(), lines.end());
  std::string text = "kvasir.layers/1\n";
  if (anchor_row) text += "anchor predicts nothing\n";
  for (const std::string& line : lines) text += line;
  return Sha256Hex(text);
}

}  // namespace

ModelInput ExplicitInput(Role role, std::string name, std::vector<CacheLayer> layers,
                         std::int64_t context_tokens, bool anchor_row) {
  ModelInput input;
  for (CacheLayer& layer : layers) {
    if (layer.name.empty()) layer.name = absl::StrFormat("%s.layers.%d", RoleName(role), layer.id.index);
    if (layer.mixer.empty()) layer.mixer = std::visit(CacheWord{}, layer.cache);
    input.layers_total = std::max<std::int64_t>(input.layers_total, std::int64_t{layer.id.index} + 1);
  }
  input.ref = {name.empty() ? absl::StrFormat("%s-layers", RoleName(role)) : std::move(name),
               DigestOf(layers, anchor_row)};
  input.context_tokens = context_tokens == 0 ? kContextTokensMax : context_tokens;
  if (role == Role::kDraft) {
    DraftFacts draft;
    draft.ref = input.ref;
    input.draft = draft;
    input.draft_anchor_row = anchor_row;
  }
  input.layers = std::move(layers);
  return input;
}

}  // namespace kvasir
