#include "planner/core/sized.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/core/wide.h"

namespace kvasir {
namespace {

absl::Status VerifyPool(const Sized& sized, std::size_t place) {
  const SizedPool& pool = sized.pools[place];
  const PackedPool& packed = sized.chosen().pools[place];
  const std::string& name = sized.packed.grouped.pools[place].name;
  const auto broken = [&](const char* what) {
    return absl::InternalError("sized: pool " + name + ": " + what);
  };
  if (Wide{pool.stride_bytes} * pool.blocks_per_parent != sized.parent_bytes)
    return broken("P is not k * stride");
  if (pool.stride_bytes % packed.unit_bytes != 0) return broken("the stride is no multiple of its unit");
  if (pool.stride_bytes < pool.block.block_bytes) return broken("the stride is below the block");
  if (std::count(packed.blocks.begin(), packed.blocks.end(), pool.block) != 1) return broken("unknown block");
  std::size_t layers = 0;
  for (const GroupedGroup& group : sized.packed.grouped.pools[place].groups) layers += group.layers.size();
  return layers == pool.pages.size() ? absl::OkStatus() : broken("not one page for each layer");
}

}  // namespace

std::vector<PoolLoad> LoadsOf(const Sized& sized) {
  std::vector<PoolLoad> loads;
  for (std::size_t i = 0; i < sized.pools.size(); ++i) {
    const SizedPool& pool = sized.pools[i];
    loads.push_back({.demand = DemandOf(sized.packed, sized.chosen().pools[i], i, pool.block),
                     .stride_bytes = pool.stride_bytes,
                     .blocks_per_parent = pool.blocks_per_parent});
  }
  return loads;
}

std::string ToText(const Sized& sized) {
  std::string text = absl::StrFormat(
      "rollback %s, arena %d bytes, %d parents of %d bytes, at most %d allowed, worst cost %d / 512\n",
      StateRollbackName(sized.chosen().rollback), sized.arena_bytes(), sized.parents, sized.parent_bytes,
      sized.choice.parent_bytes_max.value(), sized.choice.cost_512);
  for (std::size_t i = 0; i < sized.pools.size(); ++i) {
    const SizedPool& pool = sized.pools[i];
    text += absl::StrFormat("pool %s: %s, stride %d, %d in a parent\n", sized.packed.grouped.pools[i].name,
                            BlockText(pool.block), pool.stride_bytes, pool.blocks_per_parent);
  }
  for (const RollbackOption& option : sized.rollback_options) {
    text +=
        absl::StrFormat("option %s%s:", StateRollbackName(option.rollback), option.chosen ? ", chosen" : "");
    if (!option.possible) text += " not possible";
    for (const CapacityRow& row : option.capacity) {
      text += absl::StrFormat(" %d of %d tokens", row.requests, row.context_tokens);
    }
    text += "\n";
  }
  return text;
}

absl::Status Verify(const Sized& sized) {
  if (sized.variant >= sized.packed.variants.size()) return absl::InternalError("sized: no such variant");
  if (sized.pools.size() != sized.packed.grouped.pools.size())
    return absl::InternalError("sized: pools are missing");
  if (sized.parent_bytes < 1 || sized.parents != sized.arena_bytes() / sized.parent_bytes) {
    return absl::InternalError("sized: the parents are not those that fit the arena");
  }
  if (sized.parent_bytes > sized.choice.parent_bytes_max.value())
    return absl::InternalError("sized: P above its bound");
  for (std::size_t i = 0; i < sized.pools.size(); ++i) KVASIR_RETURN_IF_ERROR(VerifyPool(sized, i));
  // Counted here pool by pool, without the search's bounds.
  const PlanRequest& request = sized.packed.request();
  std::int64_t parents = 1;
  for (const PoolLoad& load : LoadsOf(sized)) {
    const std::int64_t blocks =
        BlocksForRequests(load, request.min_requests, request.context_tokens, request.prefill_chunk);
    parents += (blocks + load.blocks_per_parent - 1) / load.blocks_per_parent;
  }
  if (parents > sized.parents) return absl::InternalError("sized: min_requests are not admitted");
  return absl::OkStatus();
}

}  // namespace kvasir
