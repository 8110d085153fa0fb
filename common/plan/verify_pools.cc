// Pools of a plan: every page inside its block, every block inside its parent, nothing over anything else.
#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/plan/verify_parts.h"

namespace kvasir::verify {
namespace {

constexpr std::int64_t kStrideUnit = 256;

absl::Status CheckLifetime(const Field& field, const Plan& plan, const PlanPool& pool) {
  const bool per_sequence = pool.lifetime.kind == LifetimeKind::kPerSequence;
  const bool bounded = pool.lifetime.kind == LifetimeKind::kBoundedWindow;
  if (bounded) {
    KVASIR_RETURN_IF_ERROR(CheckRange(field + ".window", pool.lifetime.window, 1, kContextTokensMax));
  } else {
    KVASIR_RETURN_IF_ERROR(
        CheckEqual(field + ".window", pool.lifetime.window, 0, "only bounded_window has one"));
  }
  const std::int64_t snapshots = plan.rollback == StateRollback::kSnapshots ? plan.draft_tokens : 0;
  KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".copies", pool.lifetime.copies, per_sequence ? 1 + snapshots : 0,
                                    "one state and its snapshots in per_sequence pools, else 0"));
  if (bounded || per_sequence || plan.topology.dcp == 1) {
    KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".sharded", pool.sharded ? 1 : 0, 0,
                                      "only per_token pools under dcp > 1 are sharded over context"));
  }
  if (per_sequence) {
    KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".block_tokens", pool.block_tokens, 0, "a state has no rows"));
    return CheckRange(field + ".parts", pool.parts, 1, kLayersMax);
  }
  KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".parts", pool.parts, 1, "only states are cut into parts"));
  KVASIR_RETURN_IF_ERROR(CheckRange(field + ".block_tokens", pool.block_tokens, 1, kBlockTokensMax));
  if (!pool.sharded || pool.block_tokens % plan.topology.interleave == 0) return absl::OkStatus();
  return Broken(field + ".block_tokens", std::to_string(pool.block_tokens),
                absl::StrFormat("a multiple of interleave %d", plan.topology.interleave));
}

// The blocks tile each parent exactly, and each starts where every page's alignment allows.
absl::Status CheckStride(const Field& field, const Plan& plan, const PlanPool& pool) {
  KVASIR_RETURN_IF_ERROR(CheckRange(field + ".block_bytes", pool.block_bytes, 1, kArenaBytesMax));
  KVASIR_RETURN_IF_ERROR(
      CheckRange(field + ".stride_bytes", pool.stride_bytes, pool.block_bytes, kArenaBytesMax));
  const std::int64_t parent = plan.parent_bytes.value();
  KVASIR_RETURN_IF_ERROR(CheckRange(field + ".stride_bytes", pool.stride_bytes, pool.block_bytes, parent));
  KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".blocks_per_parent", pool.blocks_per_parent,
                                    parent / pool.stride_bytes, "parent_bytes / stride_bytes"));
  KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".blocks_per_parent * stride_bytes",
                                    pool.blocks_per_parent * pool.stride_bytes, parent, "parent_bytes"));
  return CheckEqual(field + ".stride_bytes mod 256", pool.stride_bytes % kStrideUnit, 0, "a multiple of 256");
}

std::int64_t PageBytes(const Plan& plan, const PlanPool& pool, const LayoutKey& layout) {
  if (layout.kind == LayoutKind::kState) return StateBytes(layout) + RingBytes(layout, plan.draft_tokens);
  return pool.block_tokens * RowBytes(layout);
}

absl::Status CheckPage(const Field& field, const Plan& plan, const PlanPool& pool, const PlanLayer& layer) {
  const std::string id = LayerIdText(layer.id);
  const Field at = field + ".layers[" + id + "]";
  const LayoutKey& layout = layer.layout;
  const bool state = layout.kind == LayoutKind::kState;
  KVASIR_RETURN_IF_ERROR(CheckEqual(at + ".layout.kind", state ? 1 : 0,
                                    pool.lifetime.kind == LifetimeKind::kPerSequence ? 1 : 0,
                                    "state (1) exactly in per_sequence pools"));
  KVASIR_RETURN_IF_ERROR(
      CheckEqual(at + ".layout.sharded", layout.sharded ? 1 : 0, pool.sharded ? 1 : 0, "as its pool"));
  KVASIR_RETURN_IF_ERROR(CheckRange(at + ".part", layer.part, 0, pool.parts - 1));
  KVASIR_RETURN_IF_ERROR(CheckEqual(at + ".page_bytes", layer.page_bytes, PageBytes(plan, pool, layout),
                                    state ? "its state, and its ring under replay" : "block_tokens rows"));
  KVASIR_RETURN_IF_ERROR(CheckRange(at + ".offset_bytes", layer.offset_bytes, 0, pool.block_bytes));
  KVASIR_RETURN_IF_ERROR(CheckEqual(at + ".offset_bytes mod alignment",
                                    layer.offset_bytes % layout.alignment_bytes, 0,
                                    "aligned as its layout says"));
  return CheckEqual(at + ".stride_bytes mod alignment", pool.stride_bytes % layout.alignment_bytes, 0,
                    "so that the page is aligned in every block");
}

// Pages of one part do not overlap, no part is empty, and the largest ends where the block ends.
absl::Status CheckDisjoint(const Field& field, const PlanPool& pool) {
  struct Span {
    std::int64_t part;
    std::int64_t begin;
    std::int64_t end;
    LayerId id;
    auto operator<=>(const Span&) const = default;
  };
  std::vector<Span> spans;
  for (const PlanGroup& group : pool.groups) {
    for (const PlanLayer& layer : group.layers) {
      // Both terms are at most 2^62: no overflow.
      spans.push_back({layer.part, layer.offset_bytes, layer.offset_bytes + layer.page_bytes, layer.id});
    }
  }
  std::sort(spans.begin(), spans.end());
  std::int64_t end_max = 0;
  std::int64_t parts = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    end_max = std::max(end_max, spans[i].end);
    if (i == 0 || spans[i].part != spans[i - 1].part) {
      KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".parts", spans[i].part, parts++, "parts without gaps"));
      continue;
    }
    if (spans[i].begin >= spans[i - 1].end) continue;
    const std::string id = LayerIdText(spans[i].id);
    return Broken(field + ".layers[" + id + "].offset_bytes", std::to_string(spans[i].begin),
                  absl::StrFormat("at least %d, where the page of %s ends", spans[i - 1].end,
                                  LayerIdText(spans[i - 1].id)));
  }
  KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".parts", pool.parts, parts, "as many as its layers use"));
  return CheckEqual(field + ".block_bytes", pool.block_bytes, end_max, "the end of its last page");
}

}  // namespace

absl::Status Pools(const Plan& plan) {
  std::set<std::string_view> names;
  std::int32_t next = 0;
  for (const PlanPool& pool : plan.pools) {
    KVASIR_RETURN_IF_ERROR(CheckName("pools.name", pool.name));
    const Field field = Field("pools[") + pool.name + "]";
    KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".id", pool.id.value(), next++, "dense, in order"));
    if (!names.insert(pool.name).second) return Broken("pools.name", pool.name, "unique");
    KVASIR_RETURN_IF_ERROR(
        CheckRange(field + ".groups.size", static_cast<std::int64_t>(pool.groups.size()), 1, kLayersMax));
    KVASIR_RETURN_IF_ERROR(CheckLifetime(field, plan, pool));
    KVASIR_RETURN_IF_ERROR(CheckStride(field, plan, pool));
    for (const PlanGroup& group : pool.groups) {
      for (const PlanLayer& layer : group.layers) KVASIR_RETURN_IF_ERROR(CheckPage(field, plan, pool, layer));
    }
    KVASIR_RETURN_IF_ERROR(CheckDisjoint(field, pool));
  }
  return absl::OkStatus();
}

}  // namespace kvasir::verify
