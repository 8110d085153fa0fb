#include "planner/rulesets/vllm/need_bytes.h"

#include <algorithm>
#include <cstddef>

#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"
#include "planner/rulesets/vllm/layer_tuples.h"
#include "planner/rulesets/vllm/unify_pages.h"

namespace kvasir::vllm {
namespace {

// Tokens scheduled but not yet settled, with `window` kept before them, never beyond the length.
std::int64_t TokensHeld(Wide window, const EngineConfig& config, std::int64_t length) {
  const Wide in_flight = Wide{config.max_concurrent_batches} * config.max_num_batched_tokens;
  return Saturated(std::min<Wide>(window + in_flight, length));
}

std::int64_t MambaBlocks(const EngineSpec& spec, const EngineConfig& config, std::int64_t length) {
  switch (config.mamba_cache_mode) {
    case MambaCacheMode::kAll:
      return CeilDiv(length, spec.block_size) + spec.num_speculative_blocks;
    case MambaCacheMode::kAlign:
      return 2 + spec.num_speculative_blocks + spec.num_prefill_checkpoint_blocks;
    case MambaCacheMode::kNone:
      break;
  }
  return 1 + spec.num_speculative_blocks;
}

// Pages of one layer.
EngineResult<std::int64_t> RequestPages(const EngineSpec& spec, const EngineConfig& config,
                                        std::int64_t length) {
  switch (spec.kind) {
    case SpecKind::kFull:
    case SpecKind::kMla:
    case SpecKind::kHiddenState:
    case SpecKind::kRswa:
    case SpecKind::kSinkFull: {
      const std::int64_t local = spec.dcp_sharded && config.dcp > 1 ? CeilDiv(length, config.dcp) : length;
      return CeilDiv(local, spec.block_size);
    }
    case SpecKind::kSliding:
    case SpecKind::kSlidingMla:
    case SpecKind::kKpoolTail: {
      if (spec.dcp_sharded && config.dcp > 1) {
        return PlanFailure(EngineErrorKind::kAssertionError,
                           "context parallelism does not support a sliding window; set dcp to 1");
      }
      if (spec.kind == SpecKind::kKpoolTail) return 1;
      const Wide window = Wide{spec.sliding_window.value_or(1)} - 1 + spec.extra_retained_tokens;
      return CeilDiv(TokensHeld(window, config, length), spec.block_size) + 1;
    }
    case SpecKind::kChunkedLocal:
      return CeilDiv(TokensHeld(spec.attention_chunk_size.value_or(0), config, length), spec.block_size);
    case SpecKind::kMamba:
      return MambaBlocks(spec, config, length);
    case SpecKind::kCross:
      return CeilDiv(config.max_num_encoder_input_tokens, spec.block_size);
    case SpecKind::kEncoderOnly:
      return 0;
    case SpecKind::kCircularBuffer:
      return 1;
  }
  return 0;
}

}  // namespace

EngineResult<std::int64_t> RequestBytes(const SpecTable& table, std::int32_t spec, const EngineConfig& config,
                                        std::int64_t length) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t pages, RequestPages(table[spec], config, length));
  if (table[spec].kind == SpecKind::kEncoderOnly) return 0;
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(spec));
  return Exact(Wide{pages} * page);
}

namespace {

// The engine divides a layer's bytes by its page again: 0 bytes of page raise.
EngineResult<std::int64_t> SpecBlocks(const SpecTable& table, std::int32_t spec, const EngineConfig& config,
                                      std::int64_t length) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes, RequestBytes(table, spec, config, length));
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(spec));
  return ExactCeilDiv(bytes, page);
}

EngineResult<std::int64_t> TotalBlocks(const SpecTable& table, const std::vector<EngineGroup>& groups,
                                       const EngineConfig& config, std::int64_t length) {
  std::int64_t blocks = 0;
  for (const EngineGroup& group : groups) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t own, RequestBlocks(table, group, config, length));
    KVASIR_ASSIGN_OR_RETURN(blocks, Exact(Wide{blocks} + own));
  }
  return blocks;
}

// 2026-08's estimate for packed wrappers: every group is charged as many tuples as the largest has, each of
// the first group's distinct pages. More than the real stride.
EngineResult<std::int64_t> PackedTupleBytes(const SpecTable& table, const std::vector<EngineGroup>& groups) {
  const auto members = [](const EngineGroup& group) -> const LayerSpecs& {
    return std::get<UniformTypeSpecs>(group.spec).members;
  };
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> pages, PageSizes(table, members(groups.front())));
  std::int64_t tuple = 0;
  for (const std::int64_t page : pages) {
    KVASIR_ASSIGN_OR_RETURN(tuple, Exact(Wide{tuple} + page));
  }
  std::int64_t tuples = 0;
  for (const EngineGroup& group : groups) {
    KVASIR_ASSIGN_OR_RETURN(const std::vector<PageLayers> by_page, LayersByPage(table, members(group)));
    tuples = std::max(tuples, TupleCount(by_page));
  }
  return Exact(Wide{tuple} * tuples);
}

// 2026-08's single wrapper: its members are charged one by one.
EngineResult<std::int64_t> PerLayerBytes(const SpecTable& table, const EngineGroup& group,
                                         const EngineConfig& config, std::int64_t length) {
  std::int64_t total = 0;
  for (const UniformTypeSpecs::Member& member : std::get<UniformTypeSpecs>(group.spec).members) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes, RequestBytes(table, member.spec, config, length));
    KVASIR_ASSIGN_OR_RETURN(total, Exact(Wide{total} + bytes));
  }
  return total;
}

EngineResult<std::int64_t> SharedSlotBlocks(const SpecTable& table, const std::vector<EngineGroup>& groups,
                                            const SharedSlots& slots, const EngineConfig& config,
                                            std::int64_t length) {
  KVASIR_ASSIGN_OR_RETURN(std::int64_t blocks,
                          RequestBlocks(table, groups[slots.latent_group], config, length));
  for (const std::size_t g : slots.mamba_groups) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t own, RequestBlocks(table, groups[g], config, length));
    KVASIR_ASSIGN_OR_RETURN(blocks, Exact(Wide{blocks} + own));
  }
  const bool tails = slots.tail_group.has_value() && !groups[*slots.tail_group].layers.empty();
  return blocks + (tails ? 1 : 0);
}

}  // namespace

EngineResult<std::int64_t> RequestBlocks(const SpecTable& table, const EngineGroup& group,
                                         const EngineConfig& config, std::int64_t length) {
  if (const auto* const merged = std::get_if<std::int32_t>(&group.spec)) {
    return SpecBlocks(table, *merged, config, length);
  }
  std::int64_t most = 0;
  std::int32_t last = -1;
  for (const UniformTypeSpecs::Member& member : std::get<UniformTypeSpecs>(group.spec).members) {
    if (member.spec == last) continue;
    last = member.spec;
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t blocks, SpecBlocks(table, member.spec, config, length));
    most = std::max(most, blocks);
  }
  return most;
}

EngineResult<std::int64_t> NeededBytes(const SpecTable& table, const std::vector<EngineGroup>& groups,
                                       const PoolShape& shape, const EngineConfig& config,
                                       std::int64_t length) {
  if (groups.empty()) return 0;
  std::int64_t per_block = shape.bytes_per_block;
  std::int64_t blocks = 0;
  switch (shape.kind) {
    case PoolShape::Kind::kPerLayer:
      return PerLayerBytes(table, groups.front(), config, length);
    case PoolShape::Kind::kSharedSlots: {
      KVASIR_ASSIGN_OR_RETURN(blocks, SharedSlotBlocks(table, groups, *shape.slots, config, length));
      return Exact(Wide{blocks} * per_block);
    }
    case PoolShape::Kind::kPacked:
      // Packed by request of a connector, the groups are merged and charged as if they shared pages.
      if (std::holds_alternative<UniformTypeSpecs>(groups.front().spec)) {
        KVASIR_ASSIGN_OR_RETURN(per_block, PackedTupleBytes(table, groups));
      } else {
        KVASIR_ASSIGN_OR_RETURN(const PoolShape shared, SharedPagesShape(table, groups));
        per_block = shared.bytes_per_block;
      }
      break;
    case PoolShape::Kind::kSharedPages:
    case PoolShape::Kind::kRuns:
      break;
  }
  KVASIR_ASSIGN_OR_RETURN(blocks, TotalBlocks(table, groups, config, length));
  return Exact(Wide{blocks} * per_block);
}

EngineResult<std::int64_t> LongestFitting(const SpecTable& table, const std::vector<EngineGroup>& groups,
                                          const PoolShape& shape, const EngineConfig& config,
                                          std::int64_t longest, std::int64_t memory) {
  std::int64_t low = 1;
  std::int64_t high = longest;
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t least, NeededBytes(table, groups, shape, config, low));
  if (least > memory) return 0;
  std::int64_t fitting = 1;
  while (low <= high) {
    const std::int64_t middle = low + (high - low) / 2;
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t needed, NeededBytes(table, groups, shape, config, middle));
    if (needed <= memory) {
      fitting = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return fitting;
}

}  // namespace kvasir::vllm
