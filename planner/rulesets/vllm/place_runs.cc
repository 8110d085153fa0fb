#include "planner/rulesets/vllm/place_runs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"
#include "planner/rulesets/vllm/unify_pages.h"

namespace kvasir::vllm {
namespace {

// Layers of one spec inside a group.
struct Run {
  std::int32_t spec = 0;
  std::vector<std::int32_t> layers = {};
};

// A wrapper's members by spec, even where none of them is on this worker: the engine then still places them.
std::vector<Run> RunsOf(const EngineGroup& group, bool repaired) {
  std::vector<Run> runs;
  if (repaired && group.layers.empty()) return runs;
  if (const auto* const merged = std::get_if<std::int32_t>(&group.spec)) {
    if (!group.layers.empty()) runs.push_back({*merged, group.layers});
    return runs;
  }
  for (const UniformTypeSpecs::Member& member : std::get<UniformTypeSpecs>(group.spec).members) {
    auto run = std::find_if(runs.begin(), runs.end(), [&](const Run& r) { return r.spec == member.spec; });
    if (run == runs.end()) run = runs.insert(runs.end(), Run{member.spec, {}});
    run->layers.push_back(member.layer);
  }
  return runs;
}

struct Strides {
  std::int64_t layer = 0;  // bytes
  std::int64_t block = 0;  // bytes
};

// Byte strides of [L, B, H, N, C] in the layout's order, innermost first. A padded page needs everything
// outside it to be layers and blocks.
EngineResult<Strides> StridesOf(const SpecTable& table, const Run& run, KvLayout layout,
                                std::int64_t fixed_block_stride, std::int64_t num_blocks) {
  const EngineSpec& spec = table[run.spec];
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t content, StateContentBytes(spec));
  const auto extent = [&](char dim) -> std::int64_t {
    switch (dim) {
      case 'L':
        return static_cast<std::int64_t>(run.layers.size());
      case 'B':
        return num_blocks;
      case 'H':
        return HeadSlots(spec);
      case 'N':
        return StatesPerBlock(spec);
      default:
        return content;
    }
  };
  const std::string_view order = KvLayoutName(layout);
  const std::size_t page_begins = std::max(order.find('L'), order.find('B')) + 1;
  const std::size_t head_at = order.find('H');
  if (spec.page_size_padded.has_value() && head_at < page_begins && HeadSlots(spec) != 1 && num_blocks != 0) {
    return PlanFailure(
        EngineErrorKind::kAssertionError,
        absl::StrFormat("layout %s puts %d heads outside a padded page", order, HeadSlots(spec)));
  }
  Strides strides;
  std::int64_t current = 1;
  for (std::size_t at = order.size(); at-- > 0;) {
    if (spec.page_size_padded.has_value() && at + 1 == page_begins) {
      current = std::max(current, *spec.page_size_padded);
      if (current % *spec.page_size_padded != 0) {
        return PlanFailure(EngineErrorKind::kAssertionError, "a stride is no multiple of the padded page");
      }
    }
    std::int64_t stride = current;
    if (order[at] == 'B' && fixed_block_stride != 0) stride = fixed_block_stride;
    if (order[at] == 'B') strides.block = stride;
    if (order[at] == 'L') strides.layer = stride;
    KVASIR_ASSIGN_OR_RETURN(current, Exact(Wide{stride} * extent(order[at])));
  }
  return strides;
}

EngineResult<EngineTensor> PlaceRun(const SpecTable& table, const Run& run, const Strides& strides,
                                    std::int64_t bytes_before, std::int64_t size) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(run.spec));
  if (page == 0) return PlanFailure(EngineErrorKind::kZeroDivisionError, "a page of 0 bytes");
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t offset,
                          Exact(Wide{bytes_before} * std::max(strides.layer, page) / page));
  return EngineTensor{size, run.layers, offset, strides.block, strides.layer};
}

}  // namespace

EngineResult<bool> CheckLayout(const SpecTable& table, const std::vector<EngineGroup>& groups,
                               KvLayout layout) {
  LayerSpecs layers;
  for (const EngineGroup& group : groups) {
    for (std::size_t i = 0; i < group.layers.size(); ++i)
      layers.push_back({group.layers[i], SpecAt(group, i)});
  }
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> pages, PageSizes(table, layers));
  if (pages.size() == 1) return true;
  if (!IsPageContiguous(layout) || (groups.size() > 1 && IsLayerContiguous(layout))) {
    return PlanFailure(EngineErrorKind::kValueError,
                       absl::StrFormat("layout %s cannot express pages of %d sizes; use BLHNC or BLNHC",
                                       KvLayoutName(layout), pages.size()));
  }
  return true;
}

EngineResult<std::vector<EngineTensor>> PlaceRuns(const SpecTable& table,
                                                  const std::vector<EngineGroup>& groups, KvLayout layout,
                                                  std::int64_t bytes_per_block, std::int64_t num_blocks) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t size, Exact(Wide{bytes_per_block} * num_blocks));
  const std::int64_t fixed = IsBlockOutermost(layout) ? bytes_per_block : 0;
  std::vector<EngineTensor> tensors;
  for (const EngineGroup& group : groups) {
    std::int64_t bytes = 0;  // of one block of the group, so far
    for (const Run& run : RunsOf(group, table.repaired())) {
      KVASIR_ASSIGN_OR_RETURN(const Strides strides, StridesOf(table, run, layout, fixed, num_blocks));
      KVASIR_ASSIGN_OR_RETURN(EngineTensor tensor, PlaceRun(table, run, strides, bytes, size));
      tensors.push_back(std::move(tensor));
      KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(run.spec));
      KVASIR_ASSIGN_OR_RETURN(bytes,
                              Exact(bytes + Wide{page} * static_cast<std::int64_t>(run.layers.size())));
    }
  }
  return tensors;
}

EngineResult<std::vector<EngineTensor>> PlaceSharedSlots(const SpecTable& table,
                                                         const std::vector<EngineGroup>& groups,
                                                         const SharedSlots& slots,
                                                         std::int64_t bytes_per_block,
                                                         std::int64_t num_blocks) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t size, Exact(Wide{bytes_per_block} * num_blocks));
  std::vector<EngineTensor> tensors;
  // The slots are pieces of one block, so their offsets and strides fit where the size does.
  const auto place = [&](std::int32_t layer, std::int64_t page, std::int64_t offset) {
    tensors.push_back({size, {layer}, offset, page, page * num_blocks});
  };
  for (std::size_t i = 0; i < slots.mla_layers.size(); ++i) {
    const std::int64_t offset = static_cast<std::int64_t>(i) * slots.mla_page * num_blocks;
    place(slots.mla_layers[i], slots.mla_page, offset);
    for (const std::size_t g : slots.mamba_groups) {
      if (i < groups[g].layers.size()) place(groups[g].layers[i], slots.mla_page, offset);
    }
  }
  const std::int64_t base = static_cast<std::int64_t>(slots.mla_layers.size()) * slots.mla_page * num_blocks;
  for (std::size_t i = 0; i < slots.indexer_layers.size(); ++i) {
    const std::int64_t offset = base + static_cast<std::int64_t>(i) * slots.indexer_page * num_blocks;
    place(slots.indexer_layers[i], slots.indexer_page, offset);
    if (!slots.tail_group.has_value()) continue;
    const EngineGroup& tails = groups[*slots.tail_group];
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(SpecAt(tails, i)));
    // A tail's own page is padded to the indexer's when it was grouped.
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t stride, Exact(Wide{page} * num_blocks));
    tensors.push_back({size, {tails.layers[i]}, offset, page, stride});
  }
  return tensors;
}

}  // namespace kvasir::vllm
