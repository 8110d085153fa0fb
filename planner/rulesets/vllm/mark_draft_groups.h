// Which groups hold the draft's layers, so that a prefix hit drops their last block.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_MARK_DRAFT_GROUPS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_MARK_DRAFT_GROUPS_H_

#include <string>
#include <string_view>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/grouping_notes.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// eagle, eagle3, mtp, dflash, dspark: methods whose draft keeps a cache of its own.
[[nodiscard]] bool IsEagleLike(std::string_view method);

// 2026-08, packed groups only: the group of the last registered layer, if some layer is of DeepSeek-V4.
void MarkDraftGroups202608(const SpecTable& table, const LayerSpecs& layers, const EngineConfig& config,
                           std::vector<EngineGroup>& groups);

// 2026-11: groups with a layer that decodes several non-causal tokens; and, for mtp and DeepSeek-V4 drafts,
// the group of the last registered layer, where the groups hold every layer exactly once. `notes.log` gets
// the engine's warning where mamba layers meet a draft that nobody was marked for.
void MarkDraftGroups202611(const SpecTable& table, const LayerSpecs& layers, const EngineConfig& config,
                           std::vector<EngineGroup>& groups, GroupingNotes& notes);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_MARK_DRAFT_GROUPS_H_
