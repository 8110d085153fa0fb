#include "common/models/weight_class.h"

#include <charconv>
#include <initializer_list>
#include <variant>

namespace kvasir {
namespace {

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool HasAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (Has(text, part)) return true;
  }
  return false;
}

// The number after "layers.", if there is one.
std::optional<std::int64_t> LayerOf(std::string_view module) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t at = module.find(kLayers);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = module.substr(at + kLayers.size());
  std::int64_t layer = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  if (error != std::errc() || end == rest.data()) return std::nullopt;
  return layer;
}

// "model.layers.3" and "model.layers.3.*", but not "model.layers.3.mlp".
bool IsWholeLayer(std::string_view module) {
  while (!module.empty() && (module.back() == '*' || module.back() == '.')) module.remove_suffix(1);
  const std::size_t dot = module.rfind('.');
  return dot != std::string_view::npos && !module.starts_with("mtp") &&
         module.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
}

}  // namespace

std::optional<WeightClass> WeightClassOf(std::string_view module) {
  while (!module.empty() && (module.back() == '*' || module.back() == '.')) module.remove_suffix(1);
  if (HasAny(module, {"norm", "embed", "router", "e_score", "indexer", "vision", "visual", "audio",
                      "projector", "mtp", "conv1d", "expert_gate"}) ||
      module.ends_with(".gate") || Has(module, ".gate.")) {
    return std::nullopt;
  }
  if (Has(module, "shared_expert")) return WeightClass::kShared;
  if (Has(module, "expert")) return WeightClass::kExperts;
  if (Has(module, "lm_head") || module == "head") return WeightClass::kHead;
  if (Has(module, "mixer"))
    return HasAny(module, {"up_proj", "down_proj"}) ? WeightClass::kDense : WeightClass::kMixers;
  if (HasAny(module, {"attn", "attention", "mamba"})) return WeightClass::kMixers;
  if (HasAny(module, {"mlp", "ffn", "feed_forward"})) return WeightClass::kDense;
  return std::nullopt;
}

WeightFormat& FormatOf(WeightClass weights, WeightQuantisation& quantisation) {
  switch (weights) {
    case WeightClass::kMixers:
      return quantisation.mixers;
    case WeightClass::kDense:
      return quantisation.dense;
    case WeightClass::kExperts:
      return quantisation.experts;
    case WeightClass::kShared:
      return quantisation.shared;
    case WeightClass::kHead:
      break;
  }
  return quantisation.head;
}

ModuleCount::ModuleCount(const std::vector<ModelLayer>& layers) {
  const auto layers_of = [this](WeightClass weights) -> Layers& {
    return have_[static_cast<std::size_t>(weights)];
  };
  for (const ModelLayer& layer : layers) {
    if (!std::holds_alternative<NoMixer>(layer.mixer)) layers_of(WeightClass::kMixers).insert(layer.index);
    if (layer.mlp.intermediate > 0) layers_of(WeightClass::kDense).insert(layer.index);
    if (layer.mlp.experts > 0) layers_of(WeightClass::kExperts).insert(layer.index);
    if (layer.mlp.shared_experts > 0) layers_of(WeightClass::kShared).insert(layer.index);
  }
}

void ModuleCount::Add(std::string_view module) {
  const std::optional<std::int64_t> layer = LayerOf(module);
  if (layer.has_value() && IsWholeLayer(module)) {
    for (Layers& named : named_) named.insert(*layer);
    return;
  }
  const std::optional<WeightClass> weights = WeightClassOf(module);
  if (!weights.has_value()) return;
  const auto place = static_cast<std::size_t>(*weights);
  if (layer.has_value()) {
    named_[place].insert(*layer);
  } else {
    all_[place] = true;
  }
}

bool ModuleCount::Covers(WeightClass weights) const {
  const auto place = static_cast<std::size_t>(weights);
  if (all_[place]) return true;
  std::size_t named = 0;
  for (const std::int64_t layer : have_[place]) named += named_[place].count(layer);
  return named > 0 && 2 * named >= have_[place].size();
}

void FormatVote::Add(std::string_view module, const WeightFormat& format) {
  const std::optional<WeightClass> weights = WeightClassOf(module);
  if (!weights.has_value()) return;
  ++votes_[static_cast<std::size_t>(*weights)][{format.bits, format.group, format.scale_bits}];
}

void FormatVote::Decide(WeightQuantisation& quantisation) const {
  for (std::size_t i = 0; i < kWeightClasses; ++i) {
    std::int64_t most = 0;
    for (const auto& [key, count] : votes_[i]) {
      if (count <= most) continue;
      most = count;
      const auto& [bits, group, scale_bits] = key;
      FormatOf(static_cast<WeightClass>(i), quantisation) = {bits, group, scale_bits};
    }
  }
}

}  // namespace kvasir
