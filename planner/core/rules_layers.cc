// Ids, and keys that contradict each other.
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "common/base/checked_math.h"
#include "common/base/limits.h"
#include "planner/core/rules.h"

namespace kvasir::rules {
namespace {

constexpr std::int64_t kPoolAlignmentMax = std::int64_t{1} << 24;

// One refusal for each value that several layers share.
template <class Key, class Value>
void CheckUnique(const PlanRequest& request, RuleId rule, const std::string& operand, Key key, Value text,
                 Found& found) {
  std::map<std::decay_t<decltype(key(request.layers.front()))>, std::vector<const LayerSpec*>> users;
  for (const LayerSpec& layer : request.layers) users[key(layer)].push_back(&layer);
  for (const auto& [value, layers] : users) {
    if (layers.size() < 2) continue;
    std::vector<std::string> names;
    for (const LayerSpec* layer : layers) {
      names.push_back(rule == RuleId::kDuplicateLayerName ? LayerIdText(layer->id) : layer->name);
    }
    found.push_back(MakeRefusal(rule, std::move(names),
                                {{operand, text(value)}, {"count", std::to_string(layers.size())}}));
  }
}

void CheckRole(const LayerSpec& layer, Found& found) {
  if (layer.id.role == layer.behaviour.role) return;
  found.push_back(MakeRefusal(RuleId::kRoleMismatch, {layer.name},
                              {{"id_role", std::string(RoleName(layer.id.role))},
                               {"behaviour_role", std::string(RoleName(layer.behaviour.role))}}));
}

// The numbers themselves are CheckForm's; here: does the kind of cache have what it needs and nothing else.
void CheckLayout(const LayerSpec& layer, Found& found) {
  const LayoutKey& layout = layer.layout;
  const bool tensors = !layout.states.empty();
  const bool good = layout.kind == LayoutKind::kState
                        ? tensors && layout.heads == 0 && layout.key_dim == 0 && layout.value_dim == 0
                        : !tensors && layout.ring.empty();
  if (good) return;
  found.push_back(MakeRefusal(RuleId::kLayoutInconsistent, {layer.name},
                              {{"kind", std::string(LayoutKindName(layout.kind))},
                               {"rows", std::to_string(layout.heads)},
                               {"states", std::to_string(layout.states.size())},
                               {"ring", std::to_string(layout.ring.size())}}));
}

void CheckLifetime(const LayerSpec& layer, Found& found) {
  const auto want = [&](const std::string& what, const std::string& value, const std::string& wanted) {
    if (value == wanted) return;
    found.push_back(MakeRefusal(RuleId::kLifetimeMismatch, {layer.name},
                                {{"what", what}, {"value", value}, {"want", wanted}}));
  };
  const bool state = layer.layout.kind == LayoutKind::kState;
  const bool per_sequence = layer.lifetime.kind == LifetimeKind::kPerSequence;
  if (state != per_sequence) {
    const LifetimeKind rows =
        layer.behaviour.window > 0 ? LifetimeKind::kBoundedWindow : LifetimeKind::kPerToken;
    want("lifetime.kind", std::string(LifetimeKindName(layer.lifetime.kind)),
         std::string(LifetimeKindName(state ? LifetimeKind::kPerSequence : rows)));
    return;
  }
  want("behaviour.mixer", std::string(MixerName(layer.behaviour.mixer)),
       std::string(MixerName(state ? Mixer::kRecurrent : Mixer::kAttention)));
  want("lifetime.copies", std::to_string(layer.lifetime.copies), state ? "1" : "0");
  const bool bounded = layer.lifetime.kind == LifetimeKind::kBoundedWindow;
  if (bounded && layer.behaviour.window == 0) return want("lifetime.kind", "bounded_window", "per_token");
  want("lifetime.window", std::to_string(layer.lifetime.window),
       bounded ? std::to_string(layer.behaviour.window) : "0");
  if (!bounded) want("behaviour.window", std::to_string(layer.behaviour.window), "0");
}

// A stride is a multiple of all alignments of its pool; absurd ones would ask for absurd strides.
void CheckPools(const PlanRequest& request, Found& found) {
  std::map<PoolKey, std::int64_t> alignments;
  for (const LayerSpec& layer : request.layers) {
    std::int64_t& lcm = alignments.try_emplace(PoolKeyOf(layer), 1).first->second;
    const std::int64_t alignment = layer.layout.alignment_bytes;
    if (alignment < 1 || alignment > kAlignmentBytesMax || lcm > kPoolAlignmentMax) continue;
    lcm = CheckedLcm(lcm, alignment).value_or(kPoolAlignmentMax + 1);
    CheckRange("least common multiple of layers[].layout.alignment_bytes", lcm, 1, kPoolAlignmentMax,
               {layer.name}, found);
  }
  const auto pools = static_cast<std::int64_t>(alignments.size());
  if (pools <= kPoolsMax) return;
  found.push_back(MakeRefusal(RuleId::kTooManyPools, {},
                              {{"pools", std::to_string(pools)}, {"max", std::to_string(kPoolsMax)}}));
}

}  // namespace

PoolKey PoolKeyOf(const LayerSpec& layer) { return {layer.lifetime, layer.layout.sharded}; }

std::int64_t CountLayers(const PlanRequest& request, Role role) {
  std::int64_t count = 0;
  for (const LayerSpec& layer : request.layers) count += layer.id.role == role ? 1 : 0;
  return count;
}

bool HasLayers(const PlanRequest& request, Role role) { return CountLayers(request, role) > 0; }

void CheckLayers(const PlanRequest& request, Found& found) {
  if (!HasLayers(request, Role::kTarget)) {
    found.push_back(
        MakeRefusal(RuleId::kNoTargetLayers, {}, {{"layers", std::to_string(request.layers.size())}}));
  }
  const auto same = [](const std::string& text) { return text; };
  CheckUnique(
      request, RuleId::kDuplicateLayerId, "id", [](const LayerSpec& l) { return l.id; }, LayerIdText, found);
  CheckUnique(
      request, RuleId::kDuplicateLayerName, "name", [](const LayerSpec& l) { return l.name; }, same, found);
  CheckUnique(
      request, RuleId::kDuplicateRegistrationIndex, "index",
      [](const LayerSpec& l) { return l.registration_index; },
      [](std::int64_t i) { return std::to_string(i); }, found);
  for (const LayerSpec& layer : request.layers) {
    CheckRole(layer, found);
    CheckLayout(layer, found);
    CheckLifetime(layer, found);
  }
  CheckPools(request, found);
}

}  // namespace kvasir::rules
