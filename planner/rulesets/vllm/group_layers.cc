#include "planner/rulesets/vllm/group_layers.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/group_hidden_states.h"
#include "planner/rulesets/vllm/group_packed.h"
#include "planner/rulesets/vllm/group_uniform_pages.h"
#include "planner/rulesets/vllm/mark_draft_groups.h"
#include "planner/rulesets/vllm/merge_layers.h"
#include "planner/rulesets/vllm/promote_local.h"
#include "planner/rulesets/vllm/same_type.h"
#include "planner/rulesets/vllm/shared_slots.h"
#include "planner/rulesets/vllm/unify_pages.h"

namespace kvasir::vllm {
namespace {

using MaybeGroups = std::optional<std::vector<EngineGroup>>;

std::vector<std::int32_t> LayersOf(const LayerSpecs& members) {
  std::vector<std::int32_t> layers;
  layers.reserve(members.size());
  for (const UniformTypeSpecs::Member& member : members) layers.push_back(member.layer);
  return layers;
}

// One group: all specs merge, or all are of one type.
EngineResult<MaybeGroups> OneGroup(SpecTable& table, const LayerSpecs& layers,
                                   const std::vector<EngineLayer>& names, GroupingNotes& notes) {
  std::vector<EngineGroup> groups(1);
  groups[0].layers = LayersOf(layers);
  KVASIR_ASSIGN_OR_RETURN(const bool uniform, IsSpecUniform(table, layers, &notes));
  if (uniform) {
    KVASIR_ASSIGN_OR_RETURN(groups[0].spec, InternMerged(table, layers, names));
    return MaybeGroups(std::move(groups));
  }
  KVASIR_ASSIGN_OR_RETURN(std::optional<UniformTypeSpecs> wrapper, WrapSameType(table, layers));
  if (!wrapper.has_value()) return MaybeGroups();
  groups[0].spec = *std::move(wrapper);
  return MaybeGroups(std::move(groups));
}

// The path of one model family, which each version has its own of.
EngineResult<MaybeGroups> FamilyGroups(SpecTable& table, const LayerSpecs& layers, const EngineConfig& config,
                                       const std::vector<EngineLayer>& names) {
  if (table.version() == EngineVersion::k2026_11) return GroupSharedSlots(table, layers, config, names);
  KVASIR_ASSIGN_OR_RETURN(MaybeGroups groups, GroupPacked202608(table, layers));
  if (groups.has_value()) MarkDraftGroups202608(table, layers, config, *groups);
  return groups;
}

}  // namespace

EngineResult<std::vector<EngineGroup>> GroupLayers(SpecTable& table, LayerSpecs layers,
                                                   const EngineConfig& config,
                                                   const std::vector<EngineLayer>& names,
                                                   GroupingNotes& notes) {
  if (config.disable_hybrid_kv_cache_manager) {
    KVASIR_ASSIGN_OR_RETURN(layers, PromoteToOneType(table, layers, notes));
  }
  if (layers.empty()) return std::vector<EngineGroup>();
  KVASIR_ASSIGN_OR_RETURN(MaybeGroups one, OneGroup(table, layers, names, notes));
  if (one.has_value()) return *std::move(one);
  KVASIR_ASSIGN_OR_RETURN(MaybeGroups family, FamilyGroups(table, layers, config, names));
  if (family.has_value()) return *std::move(family);

  LayerSpecs hidden;
  LayerSpecs others;
  for (const UniformTypeSpecs::Member& member : layers) {
    (table[member.spec].kind == SpecKind::kHiddenState ? hidden : others).push_back(member);
  }
  if (table.version() == EngineVersion::k2026_11) {
    KVASIR_ASSIGN_OR_RETURN(MaybeGroups packed, GroupPacked202611(table, others, config.kv_cache_layout));
    if (packed.has_value()) {
      // Marked before the hidden-state groups join, and by the layers without them.
      MarkDraftGroups202611(table, others, config, *packed, notes);
      for (const UniformTypeSpecs::Member& member : hidden)
        packed->push_back({{member.layer}, member.spec, false});
      return *std::move(packed);
    }
  }

  EngineResult<LayerSpecs> unified = UnifyPages(table, others, names);
  if (!unified.ok()) {
    if (unified.failure().kind != EngineErrorKind::kNotImplementedError) return std::move(unified).failure();
    KVASIR_ASSIGN_OR_RETURN(MaybeGroups fallback, FullAllocationGroups(table, layers, notes));
    if (!fallback.has_value()) return std::move(unified).failure();
    return *std::move(fallback);
  }
  KVASIR_ASSIGN_OR_RETURN(std::vector<EngineGroup> groups, GroupUniformPages(table, *unified, names, notes));
  if (!hidden.empty()) {
    KVASIR_ASSIGN_OR_RETURN(groups, AppendHiddenStates(table, std::move(groups), hidden, names, notes));
  }
  if (table.version() == EngineVersion::k2026_11) MarkDraftGroups202611(table, layers, config, groups, notes);
  return groups;
}

}  // namespace kvasir::vllm
