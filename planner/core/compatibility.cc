#include "planner/core/compatibility.h"

#include <string_view>
#include <utility>

namespace kvasir {
namespace {

std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(std::int64_t value) { return std::to_string(value); }
std::string Text(std::string_view value) { return std::string(value); }

template <class T>
void Compare(std::string_view field, const T& a, const T& b, std::vector<FieldDifference>& out) {
  if (a != b) out.push_back({.field = std::string(field), .a = Text(a), .b = Text(b)});
}

Refusal Refuse(RuleId rule, const LayerSpec& a, const LayerSpec& b, const FieldDifference& difference) {
  return MakeRefusal(rule, {a.name, b.name}, {{"a", difference.a}, {"b", difference.b}}, difference.field);
}

}  // namespace

std::vector<FieldDifference> Differences(const BehaviourKey& a, const BehaviourKey& b) {
  std::vector<FieldDifference> out;
  Compare("behaviour.role", RoleName(a.role), RoleName(b.role), out);
  Compare("behaviour.mixer", MixerName(a.mixer), MixerName(b.mixer), out);
  Compare("behaviour.causal", a.causal, b.causal, out);
  Compare("behaviour.window", a.window, b.window, out);
  Compare("behaviour.block_rows", a.block_rows, b.block_rows, out);
  Compare("behaviour.backend", std::string_view(a.backend), std::string_view(b.backend), out);
  return out;
}

std::vector<FieldDifference> Differences(const LifetimeKey& a, const LifetimeKey& b) {
  std::vector<FieldDifference> out;
  Compare("lifetime.kind", LifetimeKindName(a.kind), LifetimeKindName(b.kind), out);
  Compare("lifetime.window", a.window, b.window, out);
  Compare("lifetime.copies", a.copies, b.copies, out);
  return out;
}

Compatibility MayShareBlocks(const LayerSpec& a, const LayerSpec& b) {
  std::vector<FieldDifference> different = Differences(a.lifetime, b.lifetime);
  Compare("layout.sharded", a.layout.sharded, b.layout.sharded, different);
  if (different.empty()) return Compatible{};
  return Refuse(RuleId::kPoolKeysDiffer, a, b, different.front());
}

Compatibility MayShareMetadata(const LayerSpec& a, const LayerSpec& b) {
  Compatibility blocks = MayShareBlocks(a, b);
  if (std::holds_alternative<Refusal>(blocks)) return blocks;
  std::vector<FieldDifference> different = Differences(a.behaviour, b.behaviour);
  Compare("layout.kind", LayoutKindName(a.layout.kind), LayoutKindName(b.layout.kind), different);
  Compare("mixer", std::string_view(a.mixer), std::string_view(b.mixer), different);
  if (different.empty()) return Compatible{};
  return Refuse(RuleId::kGroupKeysDiffer, a, b, different.front());
}

}  // namespace kvasir
