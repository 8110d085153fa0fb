#include "planner/core/packed.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/geometry/context_shard.h"
#include "planner/core/stage_text.h"
#include "planner/core/wide.h"

namespace kvasir {
namespace {

std::int64_t LayerCount(const GroupedPool& pool) {
  std::int64_t count = 0;
  for (const GroupedGroup& group : pool.groups) count += static_cast<std::int64_t>(group.layers.size());
  return count;
}

absl::Status VerifyOrder(const Packed& packed) {
  for (const GroupedPool& pool : packed.grouped.pools) {
    for (std::size_t i = 1; i < pool.groups.size(); ++i) {
      if (pool.groups[i - 1].layers.front() >= pool.groups[i].layers.front()) {
        return absl::InternalError("packed: groups of " + pool.name +
                                   " are not ordered by their first layer");
      }
    }
  }
  return absl::OkStatus();
}

// One part of the block cannot be smaller than the average of its pages, nor larger than all pages and one
// lost alignment each.
absl::Status VerifyBlock(const Packed& packed, const PackedVariant& variant, std::size_t place,
                         const BlockCandidate& block) {
  const GroupedPool& pool = packed.grouped.pools[place];
  Wide pages = 0;
  Wide lost = 0;
  for (const GroupedGroup& group : pool.groups) {
    for (const std::int32_t at : group.layers) {
      const LayerSpec& layer = packed.grouped.layer(at);
      pages += PageBytesOf(packed.request(), layer, variant.rollback, block.block_tokens);
      lost += layer.layout.alignment_bytes;
      if (variant.pools[place].unit_bytes % layer.layout.alignment_bytes == 0) continue;
      return absl::InternalError("packed: the unit of " + pool.name + " does not align " + layer.name);
    }
  }
  if (Wide{block.block_bytes} * block.parts >= pages && block.block_bytes <= pages + lost)
    return absl::OkStatus();
  return absl::InternalError(
      absl::StrFormat("packed: a block of %s has %d bytes", pool.name, block.block_bytes));
}

absl::Status VerifyPool(const Packed& packed, const PackedVariant& variant, std::size_t place) {
  const GroupedPool& grouped = packed.grouped.pools[place];
  const PackedPool& pool = variant.pools[place];
  if (pool.blocks.empty()) return absl::InternalError("packed: no block for " + grouped.name);
  if (pool.unit_bytes % 256 != 0) return absl::InternalError("packed: the unit of " + grouped.name);
  const std::int64_t layers = LayerCount(grouped);
  for (const BlockCandidate& block : pool.blocks) {
    const bool state = pool.lifetime.kind == LifetimeKind::kPerSequence;
    if (block.parts < 1 || layers % block.parts != 0 || state != (block.block_tokens == 0)) {
      return absl::InternalError("packed: a block of " + grouped.name + " is cut badly");
    }
    KVASIR_RETURN_IF_ERROR(VerifyBlock(packed, variant, place, block));
  }
  return absl::OkStatus();
}

}  // namespace

std::int64_t PageBytesOf(const PlanRequest& request, const LayerSpec& layer, StateRollback rollback,
                         std::int64_t block_tokens) {
  if (layer.layout.kind != LayoutKind::kState) return block_tokens * RowBytes(layer.layout);
  const std::int64_t ring =
      rollback == StateRollback::kReplay ? RingBytes(layer.layout, request.draft_tokens) : 0;
  return StateBytes(layer.layout) + ring;
}

PoolDemand DemandOf(const Packed& packed, const PackedPool& pool, std::size_t place,
                    const BlockCandidate& block) {
  const bool sharded = packed.grouped.pools[place].key.second;
  return {.lifetime = pool.lifetime,
          .context_ranks = sharded ? packed.request().topology.dcp : 1,
          .block_tokens = block.block_tokens,
          .parts = block.parts,
          .block_rows = pool.block_rows};
}

std::int64_t PayloadBytes(const Packed& packed, const PackedPool& pool, std::size_t place,
                          std::int64_t tokens) {
  if (pool.lifetime.kind == LifetimeKind::kPerSequence) {
    return Saturated(Wide{pool.payload_bytes} * pool.lifetime.copies);
  }
  std::int64_t rows = tokens;
  if (pool.lifetime.kind == LifetimeKind::kBoundedWindow) {
    rows = std::min(tokens, pool.lifetime.window + pool.block_rows - 1);
  } else if (packed.grouped.pools[place].key.second) {
    const Topology& topology = packed.request().topology;
    rows = LocalLength({.ranks = topology.dcp, .interleave = topology.interleave, .rank = 0}, tokens);
  }
  return Saturated(Wide{pool.payload_bytes} * rows);
}

std::string BlockText(const BlockCandidate& block) {
  if (block.block_tokens > 0)
    return absl::StrFormat("block of %d tokens, %d bytes", block.block_tokens, block.block_bytes);
  return absl::StrFormat("block of 1/%d of a state, %d bytes", block.parts, block.block_bytes);
}

std::string ToText(const Packed& packed) {
  std::string text;
  for (const PackedVariant& variant : packed.variants) {
    text += absl::StrFormat("rollback %s\n", StateRollbackName(variant.rollback));
    for (std::size_t i = 0; i < variant.pools.size(); ++i) {
      const PackedPool& pool = variant.pools[i];
      text +=
          absl::StrFormat("  pool %s: %s, rows %d, unit %d, payload %d bytes\n", packed.grouped.pools[i].name,
                          LifetimeText(pool.lifetime), pool.block_rows, pool.unit_bytes, pool.payload_bytes);
      for (const BlockCandidate& block : pool.blocks) text += "    " + BlockText(block) + "\n";
    }
  }
  return text;
}

absl::Status Verify(const Packed& packed) {
  KVASIR_RETURN_IF_ERROR(Verify(packed.grouped));
  KVASIR_RETURN_IF_ERROR(VerifyOrder(packed));
  if (packed.variants.empty()) return absl::InternalError("packed: no variant");
  for (const PackedVariant& variant : packed.variants) {
    if (variant.pools.size() != packed.grouped.pools.size())
      return absl::InternalError("packed: pools are missing");
    const bool rolls_back = packed.grouped.validated.rolls_back;
    if (rolls_back == (variant.rollback == StateRollback::kNone))
      return absl::InternalError("packed: rollback");
    for (std::size_t i = 0; i < variant.pools.size(); ++i)
      KVASIR_RETURN_IF_ERROR(VerifyPool(packed, variant, i));
  }
  return absl::OkStatus();
}

}  // namespace kvasir
