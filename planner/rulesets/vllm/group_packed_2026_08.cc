#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/group_packed.h"
#include "planner/rulesets/vllm/layer_tuples.h"
#include "planner/rulesets/vllm/same_type.h"
#include "planner/rulesets/vllm/unify_pages.h"

namespace kvasir::vllm {
namespace {

// Sliding latent layers of one block size and window.
struct SlidingBucket {
  std::int64_t block_size = 0;
  std::int64_t window = 0;
  LayerSpecs layers = {};
  std::vector<PageLayers> by_page = {};
};

EngineFailure Precondition(std::string message) {
  return PlanFailure(EngineErrorKind::kAssertionError, std::move(message));
}

std::vector<SlidingBucket> SlidingBuckets(const SpecTable& table, const LayerSpecs& layers) {
  std::vector<SlidingBucket> buckets;
  for (const UniformTypeSpecs::Member& member : layers) {
    const EngineSpec& spec = table[member.spec];
    if (spec.kind != SpecKind::kSlidingMla) continue;
    const std::int64_t window = spec.sliding_window.value_or(0);
    auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const SlidingBucket& b) {
      return b.block_size == spec.block_size && b.window == window;
    });
    if (bucket == buckets.end()) {
      bucket = buckets.insert(buckets.end(), SlidingBucket{spec.block_size, window, {}, {}});
    }
    bucket->layers.push_back(member);
  }
  return buckets;
}

}  // namespace

EngineResult<PackedGroups> GroupPacked202608(const SpecTable& table, const LayerSpecs& layers) {
  std::vector<SlidingBucket> buckets = SlidingBuckets(table, layers);
  if (buckets.empty()) return PackedGroups();
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sizes, PageSizes(table, layers));
  if (sizes.size() <= 1) return PackedGroups();

  LayerSpecs latent;
  for (const UniformTypeSpecs::Member& member : layers) {
    if (IsMlaKind(table[member.spec].kind)) latent.push_back(member);
  }
  if (latent.empty()) return Precondition("packing needs mla layers beside the sliding_mla ones");
  KVASIR_ASSIGN_OR_RETURN(const bool one_type, IsSameType(table, latent));
  if (!one_type) return Precondition("the mla layers have several block sizes and cannot be one group");

  std::vector<std::int64_t> counts;
  KVASIR_ASSIGN_OR_RETURN(const std::vector<PageLayers> latent_by_page, LayersByPage(table, latent));
  counts.push_back(TupleCount(latent_by_page));
  for (SlidingBucket& bucket : buckets) {
    KVASIR_ASSIGN_OR_RETURN(bucket.by_page, LayersByPage(table, bucket.layers));
    counts.push_back(TupleCount(bucket.by_page));
  }
  const std::int64_t tuples = LeastPaddingSize(counts, counts.front());

  std::vector<EngineGroup> groups;
  KVASIR_ASSIGN_OR_RETURN(EngineGroup latent_group, WrappedGroup(table, latent));
  groups.push_back(std::move(latent_group));
  for (const SlidingBucket& bucket : buckets) {
    if (!IsBalanced(bucket.by_page)) {
      return Precondition(
          "sliding_mla layers of one block size and window have unequal numbers per page size");
    }
    const std::int64_t count = CeilDiv(TupleCount(bucket.by_page), tuples);
    for (std::int64_t i = 0; i < count; ++i) {
      KVASIR_ASSIGN_OR_RETURN(EngineGroup group,
                              WrappedGroup(table, StridedTuples(bucket.by_page, i, count)));
      groups.push_back(std::move(group));
    }
  }
  return PackedGroups(std::move(groups));
}

}  // namespace kvasir::vllm
