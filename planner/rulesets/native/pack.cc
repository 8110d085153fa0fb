#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "common/base/checked_math.h"
#include "planner/rulesets/native/native.h"

namespace kvasir::native {
namespace {

constexpr std::int64_t kStrideUnit = 256;

// Per-token pools first, then windows by size, then states; sharded before replicated.
auto PoolOrder(const GroupedPool& pool) {
  return std::tuple(pool.key.first, !pool.key.second, pool.groups.front().layers.front());
}

void SortPools(Grouped& grouped) {
  for (GroupedPool& pool : grouped.pools) {
    std::sort(pool.groups.begin(), pool.groups.end(), [](const GroupedGroup& a, const GroupedGroup& b) {
      return a.layers.front() < b.layers.front();
    });
  }
  std::sort(grouped.pools.begin(), grouped.pools.end(),
            [](const GroupedPool& a, const GroupedPool& b) { return PoolOrder(a) < PoolOrder(b); });
}

std::int64_t LayerCount(const GroupedPool& pool) {
  std::size_t count = 0;
  for (const GroupedGroup& group : pool.groups) count += group.layers.size();
  return static_cast<std::int64_t>(count);
}

std::int64_t BlockBytes(const std::vector<PlacedPage>& pages) {
  std::int64_t bytes = 0;
  for (const PlacedPage& page : pages) bytes = std::max(bytes, page.offset_bytes + page.page_bytes);
  return bytes;
}

// Every page size for tokens, every divisor of the layer count for states; ascending.
std::vector<BlockCandidate> BlocksOf(const Grouped& grouped, std::size_t place, StateRollback rollback) {
  const GroupedPool& pool = grouped.pools[place];
  std::vector<BlockCandidate> blocks;
  if (pool.key.first.kind == LifetimeKind::kPerSequence) {
    const std::int64_t layers = LayerCount(pool);
    for (std::int64_t parts = 1; parts <= layers; ++parts) {
      if (layers % parts == 0) blocks.push_back({.block_tokens = 0, .parts = parts, .block_bytes = 0});
    }
  } else {
    for (const std::int64_t tokens : grouped.validated.page_tokens.at(pool.key)) {
      blocks.push_back({.block_tokens = tokens, .parts = 1, .block_bytes = 0});
    }
  }
  for (BlockCandidate& block : blocks)
    block.block_bytes = BlockBytes(PlacePages(grouped, place, rollback, block));
  return blocks;
}

PackedPool PackPool(const Grouped& grouped, std::size_t place, StateRollback rollback) {
  const PlanRequest& request = grouped.validated.request();
  PackedPool pool;
  pool.lifetime = grouped.pools[place].key.first;
  if (rollback == StateRollback::kSnapshots && pool.lifetime.kind == LifetimeKind::kPerSequence) {
    pool.lifetime.copies = 1 + request.draft_tokens;
  }
  pool.unit_bytes = kStrideUnit;
  for (const GroupedGroup& group : grouped.pools[place].groups) {
    for (const std::int32_t at : group.layers) {
      const LayerSpec& layer = grouped.layer(at);
      pool.block_rows = std::max(pool.block_rows, layer.behaviour.block_rows);
      pool.payload_bytes += PageBytesOf(request, layer, rollback, 1);
      // The validated request bounds this least common multiple.
      pool.unit_bytes = pool.unit_bytes / std::gcd(pool.unit_bytes, layer.layout.alignment_bytes) *
                        layer.layout.alignment_bytes;
    }
  }
  pool.blocks = BlocksOf(grouped, place, rollback);
  return pool;
}

// What can be done at all; what the request prefers is decided when the sizes are known.
std::vector<StateRollback> Rollbacks(const Grouped& grouped) {
  if (!grouped.validated.rolls_back) return {StateRollback::kNone};
  const std::vector<LayerSpec>& layers = grouped.validated.request().layers;
  const bool rings = std::all_of(layers.begin(), layers.end(), [](const LayerSpec& layer) {
    return layer.layout.kind != LayoutKind::kState || !layer.layout.ring.empty();
  });
  if (!rings) return {StateRollback::kSnapshots};
  return {StateRollback::kSnapshots, StateRollback::kReplay};
}

}  // namespace

std::vector<PlacedPage> PlacePages(const Grouped& grouped, std::size_t pool, StateRollback rollback,
                                   const BlockCandidate& block) {
  const GroupedPool& source = grouped.pools[pool];
  const std::int64_t layers_per_part = LayerCount(source) / block.parts;
  std::vector<PlacedPage> pages;
  std::int64_t place = 0;
  std::int64_t end = 0;
  for (const GroupedGroup& group : source.groups) {
    for (const std::int32_t at : group.layers) {
      const LayerSpec& layer = grouped.layer(at);
      const std::int64_t part = place++ / layers_per_part;
      if (!pages.empty() && pages.back().part != part) end = 0;
      const std::int64_t alignment = layer.layout.alignment_bytes;
      const std::int64_t offset = CeilDiv(end, alignment) * alignment;
      const std::int64_t bytes =
          PageBytesOf(grouped.validated.request(), layer, rollback, block.block_tokens);
      pages.push_back({.part = part, .offset_bytes = offset, .page_bytes = bytes});
      end = offset + bytes;
    }
  }
  return pages;
}

Packed PackBlocks(Grouped grouped) {
  SortPools(grouped);
  Packed out{.grouped = std::move(grouped), .variants = {}};
  for (const StateRollback rollback : Rollbacks(out.grouped)) {
    PackedVariant& variant = out.variants.emplace_back();
    variant.rollback = rollback;
    for (std::size_t i = 0; i < out.grouped.pools.size(); ++i) {
      variant.pools.push_back(PackPool(out.grouped, i, rollback));
    }
  }
  return out;
}

}  // namespace kvasir::native
