#include "planner/rulesets/vllm/mark_draft_groups.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_format.h"

namespace kvasir::vllm {
namespace {

// Whether `test` holds for the spec of some layer that the group's spec covers.
template <class Test>
bool AnySpec(const SpecTable& table, const EngineGroup& group, Test test) {
  const std::vector<std::int32_t> specs = SpecsOf(group);
  return std::any_of(specs.begin(), specs.end(), [&](std::int32_t id) { return test(table[id]); });
}

void MarkGroupOf(std::int32_t layer, std::vector<EngineGroup>& groups) {
  for (EngineGroup& group : groups) {
    if (std::find(group.layers.begin(), group.layers.end(), layer) == group.layers.end()) continue;
    group.eagle = true;
    return;
  }
}

bool Partition(const LayerSpecs& layers, const std::vector<EngineGroup>& groups) {
  std::vector<std::int32_t> grouped;
  for (const EngineGroup& group : groups) {
    grouped.insert(grouped.end(), group.layers.begin(), group.layers.end());
  }
  if (grouped.size() != layers.size()) return false;
  std::vector<std::int32_t> all;
  all.reserve(layers.size());
  for (const UniformTypeSpecs::Member& member : layers) all.push_back(member.layer);
  std::sort(grouped.begin(), grouped.end());
  std::sort(all.begin(), all.end());
  return grouped == all;
}

bool DraftRegistersLast(const EngineConfig& config) {
  if (config.speculative->method == "mtp") return true;
  return config.model_type == "deepseek_v4" || config.model_type == "deepseek_v41";
}

}  // namespace

bool IsEagleLike(std::string_view method) {
  return method == "eagle" || method == "eagle3" || method == "mtp" || method == "dflash" ||
         method == "dspark";
}

void MarkDraftGroups202608(const SpecTable& table, const LayerSpecs& layers, const EngineConfig& config,
                           std::vector<EngineGroup>& groups) {
  if (!config.speculative.has_value() || !IsEagleLike(config.speculative->method) || layers.empty()) return;
  const bool deepseek_v4 = std::any_of(layers.begin(), layers.end(), [&](const auto& member) {
    return table[member.spec].model_version == "deepseek_v4";
  });
  if (deepseek_v4) MarkGroupOf(layers.back().layer, groups);
}

void MarkDraftGroups202611(const SpecTable& table, const LayerSpecs& layers, const EngineConfig& config,
                           std::vector<EngineGroup>& groups, GroupingNotes& notes) {
  if (!config.speculative.has_value() || !IsEagleLike(config.speculative->method)) return;
  if (!config.speculative->disable_eagle_block_drop) {
    for (EngineGroup& group : groups) {
      group.eagle = group.eagle || AnySpec(table, group, [](const EngineSpec& spec) {
                      return spec.non_causal_multi_token_decode;
                    });
    }
    if (DraftRegistersLast(config) && !layers.empty() && Partition(layers, groups)) {
      MarkGroupOf(layers.back().layer, groups);
    }
  }
  const bool marked = std::any_of(groups.begin(), groups.end(), [](const EngineGroup& g) { return g.eagle; });
  const bool mamba = std::any_of(groups.begin(), groups.end(), [&](const EngineGroup& group) {
    return AnySpec(table, group, [](const EngineSpec& spec) { return spec.kind == SpecKind::kMamba; });
  });
  if (!marked && mamba) {
    notes.log.push_back(
        absl::StrFormat("Speculative decoding (method=%s) is enabled but no KV cache group could be "
                        "identified as the draft model's.",
                        config.speculative->method));
  }
}

}  // namespace kvasir::vllm
