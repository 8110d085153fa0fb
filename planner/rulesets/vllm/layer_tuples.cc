#include "planner/rulesets/vllm/layer_tuples.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/same_type.h"

namespace kvasir::vllm {

EngineResult<std::vector<PageLayers>> LayersByPage(const SpecTable& table, const LayerSpecs& layers) {
  std::vector<PageLayers> by_page;
  for (const UniformTypeSpecs::Member& member : layers) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(member.spec));
    auto row =
        std::find_if(by_page.begin(), by_page.end(), [&](const PageLayers& p) { return p.page == page; });
    if (row == by_page.end()) row = by_page.insert(by_page.end(), PageLayers{page, {}});
    row->layers.push_back(member);
  }
  return by_page;
}

std::int64_t TupleCount(const std::vector<PageLayers>& by_page) {
  std::size_t count = 0;
  for (const PageLayers& row : by_page) count = std::max(count, row.layers.size());
  return static_cast<std::int64_t>(count);
}

bool IsBalanced(const std::vector<PageLayers>& by_page) {
  return std::all_of(by_page.begin(), by_page.end(), [&](const PageLayers& row) {
    return row.layers.size() == by_page.front().layers.size();
  });
}

std::int64_t LeastPaddingSize(const std::vector<std::int64_t>& counts, std::int64_t lower) {
  const std::int64_t largest = *std::max_element(counts.begin(), counts.end());
  std::int64_t best = lower;
  std::optional<std::int64_t> least;
  for (std::int64_t size = lower; size <= largest; ++size) {
    std::int64_t padding = 0;
    for (const std::int64_t count : counts) padding += CeilDiv(count, size) * size - count;
    if (!least.has_value() || padding <= *least) {
      least = padding;
      best = size;
    }
  }
  return best;
}

LayerSpecs StridedTuples(const std::vector<PageLayers>& by_page, std::int64_t i, std::int64_t count) {
  std::size_t tuples = by_page.front().layers.size();
  for (const PageLayers& row : by_page) tuples = std::min(tuples, row.layers.size());
  LayerSpecs taken;
  for (auto at = static_cast<std::size_t>(i); at < tuples; at += static_cast<std::size_t>(count)) {
    for (const PageLayers& row : by_page) taken.push_back(row.layers[at]);
  }
  return taken;
}

EngineResult<EngineGroup> WrappedGroup(const SpecTable& table, const LayerSpecs& members) {
  KVASIR_ASSIGN_OR_RETURN(std::optional<UniformTypeSpecs> wrapper, WrapSameType(table, members));
  if (!wrapper.has_value()) {
    return PlanFailure(EngineErrorKind::kAssertionError, "the layers of a packed group are not of one type");
  }
  EngineGroup group;
  group.layers.reserve(members.size());
  for (const UniformTypeSpecs::Member& member : members) group.layers.push_back(member.layer);
  group.spec = *std::move(wrapper);
  return group;
}

}  // namespace kvasir::vllm
