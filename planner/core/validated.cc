#include "planner/core/validated.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/core/rules.h"
#include "planner/core/stage_text.h"

namespace kvasir {

std::variant<Validated, Refusals> Validate(Canonical canonical) {
  Validated out{.canonical = std::move(canonical), .page_tokens = {}, .rolls_back = false};
  const PlanRequest& request = out.request();
  rules::Found found = request.early_refusals;
  if (rules::CheckForm(request, found)) {
    rules::CheckLayers(request, found);
    rules::CheckTopology(request, found);
    rules::CheckModels(request, found);
    rules::CheckBackends(request, found, out.page_tokens);
  }
  if (!found.empty()) {
    SortRefusals(found);
    return Refusals{std::move(found)};
  }
  const bool state = std::any_of(request.layers.begin(), request.layers.end(), [](const LayerSpec& layer) {
    return layer.layout.kind == LayoutKind::kState;
  });
  out.rolls_back = state && request.draft_tokens > 0;
  return out;
}

std::string ToText(const Validated& validated) {
  std::string text = absl::StrFormat("rolls back recurrent state: %s\n", validated.rolls_back ? "yes" : "no");
  for (const auto& [key, pages] : validated.page_tokens) {
    text += absl::StrFormat("common page sizes of %s %s: {%s}\n", key.second ? "sharded" : "replicated",
                            LifetimeText(key.first), NumbersText(pages));
  }
  return text;
}

absl::Status Verify(const Validated& validated) {
  const PlanRequest& request = validated.request();
  if (request.layers.empty() || request.ranks.empty())
    return absl::InternalError("validated: no layers or no ranks");
  if (static_cast<std::int64_t>(request.ranks.size()) != request.topology.tp) {
    return absl::InternalError("validated: not one memory size for each rank");
  }
  for (const LayerSpec& layer : request.layers) {
    const bool state = layer.layout.kind == LayoutKind::kState;
    if (state != (layer.lifetime.kind == LifetimeKind::kPerSequence)) {
      return absl::InternalError("validated: " + layer.name + " has the lifetime of another kind of cache");
    }
    if (layer.behaviour.role == Role::kTarget && !layer.behaviour.causal) {
      return absl::InternalError("validated: target layer " + layer.name + " is not causal");
    }
    if (state) continue;
    const auto pages = validated.page_tokens.find({layer.lifetime, layer.layout.sharded});
    if (pages == validated.page_tokens.end() || pages->second.empty()) {
      return absl::InternalError("validated: no page size for " + layer.name);
    }
  }
  return absl::OkStatus();
}

}  // namespace kvasir
