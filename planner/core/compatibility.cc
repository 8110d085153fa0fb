#include "planner/core/compatibility.h"

#include <string_view>
#include <utility>

namespace kvasir {
namespace {

std::string YesNo(bool value) { return value ? "true" : "false"; }

std::optional<FieldDifference> Differ(std::string_view field, std::string a, std::string b) {
  if (a == b) return std::nullopt;
  return FieldDifference{std::string(field), std::move(a), std::move(b)};
}

std::optional<FieldDifference> Differ(std::string_view field, std::int64_t a, std::int64_t b) {
  if (a == b) return std::nullopt;
  return FieldDifference{std::string(field), std::to_string(a), std::to_string(b)};
}

Refusal Difference(RuleId rule, const LayerSpec& a, const LayerSpec& b, const FieldDifference& difference) {
  return MakeRefusal(rule, {a.name, b.name}, {{"a", difference.a}, {"b", difference.b}}, difference.field);
}

}  // namespace

std::optional<FieldDifference> FirstDifference(const BehaviourKey& a, const BehaviourKey& b) {
  if (a == b) return std::nullopt;
  if (auto d = Differ("behaviour.role", std::string(RoleName(a.role)), std::string(RoleName(b.role))))
    return d;
  if (auto d = Differ("behaviour.mixer", std::string(MixerName(a.mixer)), std::string(MixerName(b.mixer))))
    return d;
  if (auto d = Differ("behaviour.causal", YesNo(a.causal), YesNo(b.causal))) return d;
  if (auto d = Differ("behaviour.window", a.window, b.window)) return d;
  if (auto d = Differ("behaviour.block_rows", a.block_rows, b.block_rows)) return d;
  return Differ("behaviour.backend", a.backend, b.backend);
}

std::optional<FieldDifference> FirstDifference(const LifetimeKey& a, const LifetimeKey& b) {
  if (a == b) return std::nullopt;
  if (auto d = Differ("lifetime.kind", std::string(LifetimeKindName(a.kind)),
                      std::string(LifetimeKindName(b.kind)))) {
    return d;
  }
  if (auto d = Differ("lifetime.window", a.window, b.window)) return d;
  return Differ("lifetime.copies", a.copies, b.copies);
}

Compatibility MayShareBlocks(const LayerSpec& a, const LayerSpec& b) {
  if (const auto d = FirstDifference(a.lifetime, b.lifetime))
    return Difference(RuleId::kPoolKeysDiffer, a, b, *d);
  if (const auto d = Differ("layout.sharded", YesNo(a.layout.sharded), YesNo(b.layout.sharded))) {
    return Difference(RuleId::kPoolKeysDiffer, a, b, *d);
  }
  return Compatible{};
}

Compatibility MayShareMetadata(const LayerSpec& a, const LayerSpec& b) {
  Compatibility blocks = MayShareBlocks(a, b);
  if (std::holds_alternative<Refusal>(blocks)) return blocks;
  if (const auto d = FirstDifference(a.behaviour, b.behaviour))
    return Difference(RuleId::kGroupKeysDiffer, a, b, *d);
  const auto kind = Differ("layout.kind", std::string(LayoutKindName(a.layout.kind)),
                           std::string(LayoutKindName(b.layout.kind)));
  if (kind.has_value()) return Difference(RuleId::kGroupKeysDiffer, a, b, *kind);
  if (const auto d = Differ("mixer", a.mixer, b.mixer)) return Difference(RuleId::kGroupKeysDiffer, a, b, *d);
  return Compatible{};
}

}  // namespace kvasir
