#include "planner/rulesets/vllm/pool_bytes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"

namespace kvasir::vllm {
namespace {

EngineFailure Assertion(std::string message) {
  return PlanFailure(EngineErrorKind::kAssertionError, std::move(message));
}

EngineResult<std::int64_t> WidestGroup(const SpecTable& table, const std::vector<EngineGroup>& groups) {
  std::int64_t widest = 0;
  for (const EngineGroup& group : groups) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes, LayerPagesBytes(table, group));
    widest = std::max(widest, bytes);
  }
  if (widest == 0) return Assertion("no group has a layer here, so a block has 0 bytes");
  return widest;
}

EngineResult<PoolShape> Shape202608(const SpecTable& table, const std::vector<EngineGroup>& groups,
                                    const EngineConfig& config) {
  PoolShape shape;
  const bool wrappers = std::all_of(groups.begin(), groups.end(), [](const EngineGroup& group) {
    return std::holds_alternative<UniformTypeSpecs>(group.spec);
  });
  if (wrappers && groups.size() == 1) {
    shape.kind = PoolShape::Kind::kPerLayer;
    KVASIR_ASSIGN_OR_RETURN(shape.bytes_per_block, GroupPage(table, groups.front()));
    return shape;
  }
  if (wrappers || (config.cross_layer_blocks && groups.size() > 1)) {
    shape.kind = PoolShape::Kind::kPacked;
    KVASIR_ASSIGN_OR_RETURN(shape.bytes_per_block, WidestGroup(table, groups));
    return shape;
  }
  return SharedPagesShape(table, groups);
}

EngineResult<PoolShape> Shape202611(const SpecTable& table, const std::vector<EngineGroup>& groups) {
  PoolShape shape;
  KVASIR_ASSIGN_OR_RETURN(shape.slots, RecognizeSharedSlots(table, groups));
  if (shape.slots.has_value()) {
    shape.kind = PoolShape::Kind::kSharedSlots;
    KVASIR_ASSIGN_OR_RETURN(shape.bytes_per_block, SlotBytes(*shape.slots));
    return shape;
  }
  shape.kind = PoolShape::Kind::kRuns;
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t widest, WidestGroup(table, groups));
  std::int64_t alignment = 1;
  for (const EngineGroup& group : groups) {
    for (std::size_t i = 0; i < group.layers.size(); ++i) {
      const std::int64_t own = table[SpecAt(group, i)].block_stride_alignment.value_or(1);
      if (alignment % own == 0) continue;
      const std::optional<std::int64_t> both = CheckedLcm(alignment, own);
      if (!both.has_value()) return Exact(Wide{kExactMax} + 1).failure();
      alignment = *both;
    }
  }
  KVASIR_ASSIGN_OR_RETURN(shape.bytes_per_block, Exact(Wide{CeilDiv(widest, alignment)} * alignment));
  return shape;
}

}  // namespace

EngineResult<PoolShape> SharedPagesShape(const SpecTable& table, const std::vector<EngineGroup>& groups) {
  PoolShape shape;
  shape.kind = PoolShape::Kind::kSharedPages;
  KVASIR_ASSIGN_OR_RETURN(shape.page, GroupPage(table, groups.front()));
  for (const EngineGroup& group : groups) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, GroupPage(table, group));
    if (page != shape.page) {
      return Assertion(absl::StrFormat("groups have pages of %d and %d bytes", shape.page, page));
    }
    shape.layers = std::max(shape.layers, static_cast<std::int64_t>(group.layers.size()));
  }
  KVASIR_ASSIGN_OR_RETURN(shape.bytes_per_block, Exact(Wide{shape.page} * shape.layers));
  return shape;
}

EngineResult<PoolShape> ShapeOfPool(const SpecTable& table, const std::vector<EngineGroup>& groups,
                                    const EngineConfig& config) {
  return table.version() == EngineVersion::k2026_08 ? Shape202608(table, groups, config)
                                                    : Shape202611(table, groups);
}

EngineResult<std::int64_t> GroupPage(const SpecTable& table, const EngineGroup& group) {
  if (const auto* const merged = std::get_if<std::int32_t>(&group.spec)) return table.Page(*merged);
  std::int64_t bytes = 0;
  for (const UniformTypeSpecs::Member& member : std::get<UniformTypeSpecs>(group.spec).members) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(member.spec));
    KVASIR_ASSIGN_OR_RETURN(bytes, Exact(Wide{bytes} + page));
  }
  return bytes;
}

EngineResult<std::int64_t> LayerPagesBytes(const SpecTable& table, const EngineGroup& group) {
  if (group.layers.empty()) return 0;
  if (std::holds_alternative<UniformTypeSpecs>(group.spec)) return GroupPage(table, group);
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(std::get<std::int32_t>(group.spec)));
  return Exact(Wide{page} * static_cast<std::int64_t>(group.layers.size()));
}

}  // namespace kvasir::vllm
