#include "planner/rulesets/vllm/merge_layers.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "planner/rulesets/vllm/spec_fields.h"

namespace kvasir::vllm {
namespace {

// A field's value, and which layer has it.
std::string ValueIn(const SpecTable& table, std::int32_t spec, std::int32_t layer, std::string_view field,
                    const std::vector<EngineLayer>& names) {
  std::string text = FieldText(table[spec], field);
  if (layer >= 0 && static_cast<std::size_t>(layer) < names.size()) {
    text += " (" + names[static_cast<std::size_t>(layer)].name + ")";
  }
  return text;
}

}  // namespace

MergeResult MergeLayers(const SpecTable& table, const LayerSpecs& layers) {
  MergeResult result = MergeSpecs(table, DistinctSpecs(layers));
  const auto layer_of = [&](std::int32_t spec) {
    const auto member =
        std::find_if(layers.begin(), layers.end(), [&](const auto& m) { return m.spec == spec; });
    return member == layers.end() ? -1 : member->layer;
  };
  const auto name = [&](auto& refusal) {
    refusal.first_layer = layer_of(refusal.first);
    refusal.other_layer = layer_of(refusal.other);
  };
  if (auto* const refusal = std::get_if<CannotMerge>(&result)) name(*refusal);
  if (auto* const raises = std::get_if<MergeRaises>(&result)) name(*raises);
  return result;
}

std::string MergeRefusalText(const SpecTable& table, const CannotMerge& refusal,
                             const std::vector<EngineLayer>& names) {
  return absl::StrFormat("%s: %s is %s and %s", MergeRuleName(refusal.rule), refusal.field,
                         ValueIn(table, refusal.first, refusal.first_layer, refusal.field, names),
                         ValueIn(table, refusal.other, refusal.other_layer, refusal.field, names));
}

std::string MergeRefusalText(const SpecTable& table, const MergeRaises& refusal,
                             const std::vector<EngineLayer>& names) {
  return absl::StrFormat("two layers record %s %s and %s; a group has one", refusal.field,
                         ValueIn(table, refusal.first, refusal.first_layer, refusal.field, names),
                         ValueIn(table, refusal.other, refusal.other_layer, refusal.field, names));
}

EngineResult<std::int32_t> InternMerged(SpecTable& table, const LayerSpecs& layers,
                                        const std::vector<EngineLayer>& names) {
  MergeResult result = MergeLayers(table, layers);
  if (auto* const merged = std::get_if<EngineSpec>(&result)) return table.Intern(std::move(*merged));
  if (const auto* const refusal = std::get_if<CannotMerge>(&result)) {
    return PlanFailure(EngineErrorKind::kAssertionError,
                       "the layers of one group do not merge: " + MergeRefusalText(table, *refusal, names));
  }
  return PlanFailure(EngineErrorKind::kValueError,
                     MergeRefusalText(table, std::get<MergeRaises>(result), names));
}

EngineResult<bool> IsSpecUniform(const SpecTable& table, const LayerSpecs& layers, GroupingNotes* notes) {
  if (layers.empty()) return true;
  const MergeResult result = MergeLayers(table, layers);
  if (const auto* const refusal = std::get_if<CannotMerge>(&result); refusal != nullptr && notes != nullptr) {
    notes->Refused(table, DistinctSpecs(layers), *refusal);
  }
  if (const auto* const raises = std::get_if<MergeRaises>(&result)) {
    return PlanFailure(EngineErrorKind::kValueError, MergeRefusalText(table, *raises, {}));
  }
  return std::holds_alternative<EngineSpec>(result);
}

}  // namespace kvasir::vllm
