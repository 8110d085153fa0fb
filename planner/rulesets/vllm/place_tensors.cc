#include "planner/rulesets/vllm/place_tensors.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"
#include "planner/rulesets/vllm/place_runs.h"

namespace kvasir::vllm {
namespace {

using Tensors = EngineResult<std::vector<EngineTensor>>;

Tensors PlacePerLayer(const SpecTable& table, const EngineGroup& group, std::int64_t num_blocks) {
  std::vector<EngineTensor> tensors;
  tensors.reserve(group.layers.size());
  for (std::size_t i = 0; i < group.layers.size(); ++i) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(SpecAt(group, i)));
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t size, Exact(Wide{page} * num_blocks));
    tensors.push_back({size, {group.layers[i]}, 0, 0, 0});
  }
  return tensors;
}

// Each group's layers lie one after the other in a block; layers at one offset share a tensor.
Tensors PlacePacked(const SpecTable& table, const std::vector<EngineGroup>& groups,
                    std::int64_t bytes_per_block, std::int64_t num_blocks) {
  std::map<std::int64_t, std::vector<std::int32_t>> layers_by_offset;
  for (const EngineGroup& group : groups) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < group.layers.size(); ++i) {
      KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(SpecAt(group, i)));
      layers_by_offset[offset].push_back(group.layers[i]);
      KVASIR_ASSIGN_OR_RETURN(offset, Exact(Wide{offset} + page));
    }
  }
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t size, Exact(Wide{bytes_per_block} * num_blocks));
  std::vector<EngineTensor> tensors;
  tensors.reserve(layers_by_offset.size());
  for (auto& [offset, layers] : layers_by_offset) {
    tensors.push_back({size, std::move(layers), offset, bytes_per_block, 0});
  }
  return tensors;
}

Tensors PlaceSharedPages(const std::vector<EngineGroup>& groups, const PoolShape& shape,
                         std::int64_t num_blocks) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t size, Exact(Wide{shape.page} * num_blocks));
  std::vector<EngineTensor> tensors(static_cast<std::size_t>(shape.layers));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].size = size;
    for (const EngineGroup& group : groups) {
      if (i < group.layers.size()) tensors[i].layers.push_back(group.layers[i]);
    }
  }
  return tensors;
}

Tensors Place(const SpecTable& table, const std::vector<EngineGroup>& groups, const PoolShape& shape,
              const EngineConfig& config, std::int64_t num_blocks) {
  switch (shape.kind) {
    case PoolShape::Kind::kPerLayer:
      return PlacePerLayer(table, groups.front(), num_blocks);
    case PoolShape::Kind::kPacked:
      return PlacePacked(table, groups, shape.bytes_per_block, num_blocks);
    case PoolShape::Kind::kSharedPages:
      return PlaceSharedPages(groups, shape, num_blocks);
    case PoolShape::Kind::kRuns:
      return PlaceRuns(table, groups, config.kv_cache_layout, shape.bytes_per_block, num_blocks);
    case PoolShape::Kind::kSharedSlots:
      return PlaceSharedSlots(table, groups, *shape.slots, shape.bytes_per_block, num_blocks);
  }
  return std::vector<EngineTensor>();
}

EngineResult<std::int64_t> BlocksIn(std::int64_t memory, const PoolShape& shape, const EngineConfig& config) {
  if (shape.kind == PoolShape::Kind::kSharedPages && shape.layers == 0) {
    return PlanFailure(EngineErrorKind::kAssertionError, "no group has a layer on this worker");
  }
  if (shape.bytes_per_block == 0) {
    return PlanFailure(EngineErrorKind::kZeroDivisionError, "a block of the pool has 0 bytes");
  }
  if (config.num_gpu_blocks_override.has_value()) return *config.num_gpu_blocks_override;
  return std::max<std::int64_t>(memory, 0) / shape.bytes_per_block;
}

}  // namespace

EngineResult<EngineWorkerPlan> PlaceTensors(const SpecTable& table, std::vector<EngineGroup> groups,
                                            const EngineConfig& config, std::int64_t memory) {
  EngineWorkerPlan plan;
  plan.groups = std::move(groups);
  if (plan.groups.empty()) {
    plan.num_blocks = 1;  // the null block, which a pool always has
    return plan;
  }
  KVASIR_ASSIGN_OR_RETURN(const PoolShape shape, ShapeOfPool(table, plan.groups, config));
  if (shape.kind == PoolShape::Kind::kRuns) {
    KVASIR_ASSIGN_OR_RETURN(const bool expressed, CheckLayout(table, plan.groups, config.kv_cache_layout));
    static_cast<void>(expressed);
  }
  KVASIR_ASSIGN_OR_RETURN(plan.num_blocks, BlocksIn(memory, shape, config));
  KVASIR_ASSIGN_OR_RETURN(plan.tensors, Place(table, plan.groups, shape, config, plan.num_blocks));
  return plan;
}

EngineResult<EngineWorkerPlan> WithFewerBlocks(const SpecTable& table, EngineWorkerPlan plan,
                                               const EngineConfig& config, std::int64_t num_blocks) {
  if (plan.num_blocks == num_blocks) return plan;
  if (table.version() == EngineVersion::k2026_08) {
    for (EngineTensor& tensor : plan.tensors) tensor.size = tensor.size / plan.num_blocks * num_blocks;
    plan.num_blocks = num_blocks;
    return plan;
  }
  KVASIR_ASSIGN_OR_RETURN(const PoolShape shape, ShapeOfPool(table, plan.groups, config));
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t memory, Exact(Wide{shape.bytes_per_block} * num_blocks));
  return PlaceTensors(table, std::move(plan.groups), config, memory);
}

}  // namespace kvasir::vllm
